#pragma once

/// \file
/// Whether the server should get requests. Each database is asked once a second, on threads of its
/// own: one that hangs delays the answers about no other.
///
///     starting --(every database answered, or 5 s)--> serving --(SIGTERM)--> draining

#include <holdfast/executor.hpp>
#include <holdfast/version.hpp>

#include "serve/api/services.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

struct readiness_options {
  std::chrono::milliseconds interval{1'000};
  /// An answer that is older counts as none.
  std::chrono::milliseconds patience{5'000};
  /// After this time the server is ready although a database has not answered yet.
  std::chrono::milliseconds start_limit{5'000};
};

struct readiness_check {
  /// As `missing` names it.
  std::string name{};
  /// Asks the database, and may wait. False, or an exception: it is not available.
  std::function<bool()> ask{};
};

/// Thread-safety: may be called from any thread.
class readiness {
 public:
  explicit readiness(readiness_options options = {});
  ~readiness();
  readiness(const readiness&) = delete;
  readiness& operator=(const readiness&) = delete;

  /// Begins to ask the databases. `more` are names of other parts that are not ready; it must not
  /// wait. `shared` must outlive the checks: see `stop`.
  void start(services& shared, std::function<std::vector<std::string>()> more);
  /// The same for other checks. They must own what they use: one that waits outlives this object.
  void start(std::vector<readiness_check> checks);
  void begin_drain() noexcept { draining_ = true; }
  /// The databases all answered, or the time for it is over.
  [[nodiscard]] bool has_started() const;
  /// Names of what is not ready: `starting`, `draining`, `store:main`. Empty: ready.
  [[nodiscard]] std::vector<std::string> missing() const;
  /// Returns false if a check still waits for a database at the deadline.
  bool stop(std::chrono::steady_clock::time_point deadline);

 private:
  struct check_list;
  const readiness_options options_;
  const std::chrono::steady_clock::time_point begin_;
  std::atomic<bool> draining_ = false;
  std::atomic<bool> open_ = false;  // `start` was called
  std::shared_ptr<check_list> checks_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
