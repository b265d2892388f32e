#pragma once

/// \file
/// Progress of a long command: one line on standard error that is updated in place. Only on a
/// terminal, and at most five times per second.

#include "terminal/command.hpp"
#include "terminal/text.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::cli {

/// Thread-safety: none.
class progress {
 public:
  /// `label` is the verb before the count: `imported`. With `output_is_long`, nothing is displayed
  /// if the terminal displays the output of the command.
  progress(console& io, std::string_view label, bool output_is_long)
      : io_(io),
        label_(label),
        enabled_(io.err.is_terminal() && !(output_is_long && io.out.is_terminal())) {}
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  /// Displays the count, with a bar if the total is known.
  void update(std::uint64_t count, std::uint64_t total = 0) {
    using namespace std::chrono;
    const auto now = steady_clock::now();
    if (!enabled_ || now - last_update_ < milliseconds(200)) return;
    last_update_ = now;
    visible_ = true;
    io_.err << "\r" << label_ << " " << grouped(count);
    if (total > 0) {
      constexpr std::uint64_t width = 30;
      const std::uint64_t filled = std::min(count, total) * width / total;
      io_.err << " of " << grouped(total) << " [" << std::string(filled, '#')
              << std::string(width - filled, '.') << "]";
    }
    io_.err.flush();
  }

  /// Erases the line.
  void clear() {
    if (!visible_) return;
    io_.err << "\r\x1b[K";
    io_.err.flush();
    visible_ = false;
  }

 private:
  console& io_;
  std::string label_;
  bool enabled_;
  bool visible_ = false;
  std::chrono::steady_clock::time_point last_update_ = std::chrono::steady_clock::now();
};

}  // namespace holdfast::cli
