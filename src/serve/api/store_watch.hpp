#pragma once

/// \file
/// The last known health and findings of each store. Many consoles ask at the same time, and a
/// database that hangs answers none of them, so one thread asks, and the others get what is known,
/// with its time.

#include <holdfast/store.hpp>
#include <holdfast/store/probe.hpp>
#include <holdfast/version.hpp>

#include "serve/api/call_limit.hpp"
#include "serve/api/services.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::serve {

struct observed_store {
  std::optional<store_health> health{};
  timestamp health_at{};
  /// Number of findings by severity.
  std::optional<std::map<severity, std::uint64_t>> findings{};
  timestamp findings_at{};
};

/// Thread-safety: may be called from any thread.
class store_watch {
 public:
  explicit store_watch(services& shared) : shared_(shared) {}

  /// What is known, after asking for what is older than a second (findings: a minute), unless
  /// another thread is asking. Waits for the store.
  [[nodiscard]] observed_store observe(const store_service& service);
  /// Examines the table. Throws as `probe`, and errc::unavailable (transient) while another thread
  /// examines it.
  [[nodiscard]] probe_report examine(const store_service& service);
  /// The lock of questions that read many rows, one at a time for each store. Throws
  /// errc::unavailable (transient) if it is taken.
  [[nodiscard]] std::unique_lock<std::mutex> begin_question(const store_service& service);
  /// For calls that may wait for the store. Throws as call_limit::begin.
  [[nodiscard]] call_limit::running_call begin_call(const store_service& service) {
    return calls_of(service).begin();
  }
  [[nodiscard]] call_limit& calls_of(const store_service& service) {
    return watched_of(service).calls;
  }
  /// What is known, without asking.
  [[nodiscard]] observed_store last_observation(const store_service& service);

 private:
  struct watched {
    std::mutex mutex{};     // of `last`, never held while the store is asked
    std::mutex asking{};    // held while health is asked
    std::mutex probing{};   // held while the table is examined
    std::mutex question{};  // held while many rows are read
    observed_store last{};
    call_limit calls{};
  };
  [[nodiscard]] watched& watched_of(const store_service& service);
  probe_report examine(const store_service& service, watched& state);

  services& shared_;
  std::mutex mutex_{};
  std::map<std::string, std::unique_ptr<watched>> stores_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
