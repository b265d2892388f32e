#pragma once

/// \file
/// Progress of a long command on standard error. On a terminal it is one line that is updated in
/// place, at most five times per second. Elsewhere, such as in a log, it is a line every ten
/// seconds.

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
        terminal_(io.err.is_terminal()),
        enabled_(!terminal_ || !(output_is_long && io.out.is_terminal())) {}
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  /// Displays the count and the rate, with a bar if the total is known.
  void update(std::uint64_t count, std::uint64_t total = 0) {
    using namespace std::chrono;
    const auto now = steady_clock::now();
    if (!enabled_ || now - last_update_ < (terminal_ ? milliseconds(200) : log_interval)) return;
    last_update_ = now;
    std::string line = label_ + " " + grouped(count);
    if (total > 0) line += " of " + grouped(total);
    if (terminal_ && total > 0) {
      constexpr std::uint64_t width = 30;
      const std::uint64_t filled = std::min(count, total) * width / total;
      line += " [" + std::string(filled, '#') + std::string(width - filled, '.') + "]";
    }
    const auto elapsed =
        static_cast<std::uint64_t>(duration_cast<milliseconds>(now - begin_).count());
    line += " " + grouped(count * 1000 / std::max<std::uint64_t>(elapsed, 1)) + "/s";
    if (terminal_) io_.err << "\r" << line << "\x1b[K";
    else io_.note(line);
    io_.err.flush();
    visible_ = terminal_;
  }

  /// Erases the line.
  void clear() {
    if (!visible_) return;
    io_.err << "\r\x1b[K";
    io_.err.flush();
    visible_ = false;
  }

 private:
  static constexpr std::chrono::milliseconds log_interval = std::chrono::seconds(10);

  console& io_;
  std::string label_;
  bool terminal_;
  bool enabled_;
  bool visible_ = false;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_update_ = begin_;
};

}  // namespace holdfast::cli
