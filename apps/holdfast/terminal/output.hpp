#pragma once

/// \file
/// Output to a file descriptor. Unlike standard streams, it reports a full disk before the program
/// exits, and a closed pipe.

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace holdfast::cli {

/// The reader of the output closed the pipe (`| head -1`). The command ends; it is not an error.
struct reader_gone : std::runtime_error {
  reader_gone() : std::runtime_error("the reader of the output closed it") {}
};

/// A buffered output. Functions that write throw reader_gone, or errc::unavailable if the output
/// cannot be written. Thread-safety: none.
class output {
 public:
  explicit output(int descriptor) noexcept : descriptor_(descriptor) {}
  output(const output&) = delete;
  output& operator=(const output&) = delete;
  /// Discards what was not flushed: a destructor cannot report an error.
  ~output() = default;

  output& operator<<(std::string_view text) {
    buffer_.append(text);
    flush_if_full();
    return *this;
  }
  void flush();

  /// The buffer, for functions that append to a text. Call `flush_if_full` between calls.
  [[nodiscard]] std::string& buffer() noexcept { return buffer_; }
  void flush_if_full() {
    if (buffer_.size() >= buffer_limit) flush();
  }
  [[nodiscard]] bool is_terminal() const noexcept;

 private:
  static constexpr std::size_t buffer_limit = std::size_t{256} << 10;

  int descriptor_;
  std::string buffer_;
};

}  // namespace holdfast::cli
