#pragma once

/// \file
/// Where commands write. Standard streams hide a full disk until exit and die of a closed pipe; this one reports both.

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace holdfast::cli {

/// The reader of our output went away (`| head -1`): not an error, only the end.
struct reader_gone : std::runtime_error {
  reader_gone() : std::runtime_error("the reader of the output went away") {}
};

/// Buffers what is written to a file descriptor.
/// Every function throws reader_gone, or holdfast::error (errc::unavailable) when the output cannot be written.
/// Thread-safety: none.
class output {
 public:
  explicit output(int descriptor) noexcept : descriptor_(descriptor) {}
  output(const output&) = delete;
  output& operator=(const output&) = delete;
  /// Drops what was not flushed: a destructor could not report that it failed.
  ~output() = default;

  output& operator<<(std::string_view text) {
    buffer_.append(text);
    if (buffer_.size() >= flush_at) flush();
    return *this;
  }
  void flush();

  /// The buffer itself, for those who append much; call `settle` from time to time.
  [[nodiscard]] std::string& buffer() noexcept { return buffer_; }
  void settle() {
    if (buffer_.size() >= flush_at) flush();
  }
  [[nodiscard]] bool is_terminal() const noexcept;

 private:
  static constexpr std::size_t flush_at = std::size_t{256} << 10;

  int descriptor_;
  std::string buffer_;
};

}  // namespace holdfast::cli
