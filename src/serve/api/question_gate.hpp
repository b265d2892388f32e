#pragma once

#include <holdfast/version.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Questions of people that scan a database are answered one at a time for each database: many
/// open consoles must not keep it busy.
/// Thread-safety: every function may be called from any thread.
class question_gate {
 public:
  /// Holds the turn of a database until it is destroyed.
  class turn {
   public:
    turn(question_gate& gate, std::string database) noexcept
        : gate_(gate), database_(std::move(database)) {}
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;
    ~turn() { gate_.leave(database_); }

   private:
    question_gate& gate_;
    std::string database_;
  };

  /// Waits for the turn for a moment. Throws errc::unavailable (transient) if it does not come, or
  /// if too many wait: each of them has a thread.
  [[nodiscard]] turn enter(const std::string& database);

 private:
  static constexpr std::size_t max_waiting = 4;
  static constexpr std::chrono::seconds longest_wait{3};
  struct waiting_line {
    bool busy = false;
    std::size_t waiting = 0;
  };
  void leave(const std::string& database) noexcept;

  std::mutex mutex_{};
  std::condition_variable changed_{};
  /// One for each database of the configuration.
  std::map<std::string, waiting_line> lines_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
