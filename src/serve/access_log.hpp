#pragma once

/// \file
/// One line of JSON for each answered request:
///
///     {"at":"2026-11-15T23:05:16.120431Z","request":"0c7h2k9m4r1xz","method":"GET",
///      "path":"/v1/stores/main/countries/FR","status":200,"micros":812,"received":0,"sent":311,
///      "caller":"web","address":"10.0.0.7"}
///
/// A thread writes the lines, so that a slow disk or terminal stops no loop. While `max_waiting`
/// bytes wait, further lines are dropped and counted.

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include "serve/api/api_dispatcher.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Thread-safety: may be called from any thread.
class access_log {
 public:
  /// `-` is standard output. Throws errc::unavailable if the file cannot be opened.
  access_log(std::string file, std::shared_ptr<const holdfast::clock> clock);
  /// Writes what waits, for a second at most.
  ~access_log();
  access_log(const access_log&) = delete;
  access_log& operator=(const access_log&) = delete;

  /// Requests of /healthz and /readyz are not logged. Never waits, never throws.
  void add(const answered_request& request) noexcept;
  /// Opens the file again, after it was renamed. Throws errc::unavailable, and keeps the old one.
  void reopen();
  /// Lines that were dropped because they could not be written fast enough, or at all.
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }

 private:
  void run();
  void write_all(const std::string& lines) noexcept;

  static constexpr std::size_t max_waiting = std::size_t{4} << 20U;
  const std::string file_;
  const std::shared_ptr<const holdfast::clock> clock_;
  std::atomic<std::uint64_t> dropped_ = 0;
  std::mutex mutex_{};
  std::condition_variable wake_{};
  std::string waiting_{};
  bool stopping_ = false;
  bool ended_ = false;
  std::mutex file_mutex_{};
  int descriptor_ = -1;
  std::jthread thread_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
