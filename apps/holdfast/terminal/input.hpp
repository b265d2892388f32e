#pragma once

/// \file
/// Reads files and lines of any size within bounded memory.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

/// An open file, or standard input. The destructor closes it, unless it is standard input.
class input_file {
 public:
  /// `-` is standard input. Throws errc::not_found if the file does not exist, errc::unavailable if
  /// it cannot be opened.
  explicit input_file(const std::string& name);
  input_file(const input_file&) = delete;
  input_file& operator=(const input_file&) = delete;
  ~input_file();

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] bool is_terminal() const noexcept;
  /// Whether a read would return without waiting.
  [[nodiscard]] bool ready() const noexcept;
  /// Returns the number of bytes read; 0 at the end. Throws errc::unavailable.
  [[nodiscard]] std::size_t read(char* buffer, std::size_t size) const;

 private:
  std::string name_;
  int descriptor_;
};

/// Returns the number of lines of a regular file, from its current position on. 0 if the input is
/// something else, such as a pipe. Does not change the position.
[[nodiscard]] std::uint64_t count_lines(const input_file& file);

/// Returns the content of a file. Throws errc::too_large if it has more than `limit` bytes.
[[nodiscard]] std::string read_small_file(const std::string& name, std::size_t limit);

/// Splits an input into lines. The last line need not end with a line end. A byte order mark at the
/// start of the input is skipped. Thread-safety: none.
class line_reader {
 public:
  enum class result { line, overlong, end };

  /// `before_wait` is called before a read that would wait, so that the caller can flush its
  /// output.
  line_reader(const input_file& file, std::size_t longest, std::function<void()> before_wait);

  /// Sets `line` to the next line, without its line end. It is valid until the next call. An
  /// overlong line is skipped.
  [[nodiscard]] result next(std::string_view& line);

 private:
  /// Reads more bytes into the buffer, after `end_`.
  void fill();

  const input_file& file_;
  std::size_t longest_;
  std::function<void()> before_wait_;
  std::vector<char> buffer_;
  // buffer_: | returned | no line end | not scanned | unused |
  //                     begin_        scanned_      end_
  std::size_t begin_ = 0;
  std::size_t scanned_ = 0;
  std::size_t end_ = 0;
  bool first_line_ = true;
  bool skipping_ = false;  // within an overlong line
  bool at_end_ = false;
};

}  // namespace holdfast::cli
