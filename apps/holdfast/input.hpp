#pragma once

/// \file
/// Reading files and lines, of any size, without trusting them.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

/// A file descriptor that is closed when this goes, unless it is standard input.
class input_file {
 public:
  /// `-` is standard input. Throws errc::not_found when there is no such file, errc::unavailable when it cannot be opened.
  explicit input_file(const std::string& name);
  input_file(const input_file&) = delete;
  input_file& operator=(const input_file&) = delete;
  ~input_file();

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] bool is_terminal() const noexcept;
  /// Whether a read would return at once.
  [[nodiscard]] bool ready() const noexcept;
  /// 0 at the end. Throws errc::unavailable.
  [[nodiscard]] std::size_t read(char* into, std::size_t size) const;

 private:
  std::string name_;
  int descriptor_;
};

/// The whole of a file that must not have more than `limit` bytes.
[[nodiscard]] std::string read_small_file(const std::string& name, std::size_t limit);

/// Cuts an input into lines. The last one need not end with a line end; a byte order mark at the very start is not part of the first.
/// Thread-safety: none.
class line_reader {
 public:
  enum class found { line, overlong, end };

  /// `before_wait` is called before a read that would block, so that what was answered so far can be sent.
  line_reader(const input_file& from, std::size_t longest, std::function<void()> before_wait);

  /// The next line, without its line end; valid until the next call. An overlong one is skipped, not returned.
  [[nodiscard]] found next(std::string_view& line);

 private:
  bool fill();

  const input_file& from_;
  std::size_t longest_;
  std::function<void()> before_wait_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;    // of what was not returned yet
  std::size_t scanned_ = 0;  // no line end before here
  std::size_t end_ = 0;
  bool at_start_ = true;
  bool skipping_ = false;
  bool ended_ = false;
};

}  // namespace holdfast::cli
