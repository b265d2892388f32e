#pragma once

/// \file
/// Whether the server should get requests. Each database is asked once a second, on threads of its
/// own: one that hangs delays the answers about no other. One more thread compares the answers, and
/// reports what has changed.
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
#include <optional>
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
  /// Asks the database, and may wait. Returns why it is not available, or nothing. What it throws
  /// is a reason, too.
  std::function<std::optional<std::string>()> ask{};
};

/// Thread-safety: may be called from any thread.
class readiness {
 public:
  explicit readiness(readiness_options options = {});
  ~readiness();
  readiness(const readiness&) = delete;
  readiness& operator=(const readiness&) = delete;

  /// Begins to ask the databases. `more` are names of other parts that are not ready; it must not
  /// wait. `shared` must outlive the checks: see `stop`. Its log gets a message when a database
  /// stops to answer, and when it answers again.
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

/// For readiness_check::ask.
[[nodiscard]] std::optional<std::string> problem_of_store(holdfast::store& asked);
[[nodiscard]] std::optional<std::string> problem_of_outbox(const holdfast::outbox& asked);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
