#pragma once

/// \file
/// How far long work is: one line on standard error that changes, on a terminal only, and only when there is something to wait for.

#include "command.hpp"
#include "text.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::cli {

/// Thread-safety: none.
class progress {
 public:
  /// `done`: what is counted, as in `imported`. A terminal that shows the output itself is left alone.
  progress(console& io, std::string_view done, bool output_is_long)
      : io_(io), done_(done), shown_(io.err.is_terminal() && !(output_is_long && io.out.is_terminal())) {}
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  /// With a bar where it is known how many there are.
  void at(std::uint64_t count, std::uint64_t of = 0) {
    using namespace std::chrono;
    const auto now = steady_clock::now();
    if (!shown_ || now - last_ < milliseconds(200)) return;
    last_ = now;
    line_ = true;
    io_.err << "\r" << done_ << " " << grouped(count);
    if (of > 0) {
      constexpr std::uint64_t width = 30;
      const std::uint64_t part = std::min(count, of) * width / of;
      io_.err << " of " << grouped(of) << " [" << std::string(part, '#') << std::string(width - part, '.') << "]";
    }
    io_.err.flush();
  }

  /// The line goes; what follows begins where it began.
  void end() {
    if (!line_) return;
    io_.err << "\r\x1b[K";
    io_.err.flush();
    line_ = false;
  }

 private:
  console& io_;
  std::string done_;
  bool shown_;
  bool line_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace holdfast::cli
