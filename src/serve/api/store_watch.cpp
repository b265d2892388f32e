#include "serve/api/store_watch.hpp"

#include <holdfast/error.hpp>

#include "serve/api/server_refusal.hpp"
#include "serve/api/store_location.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::chrono::seconds health_lifetime{1};
constexpr std::chrono::seconds findings_lifetime{60};

[[noreturn]] void refuse_second(const char* activity) {
  throw server_refusal(
      errc::unavailable, "busy_database",
      std::string(activity) + " for another caller; repeat the request in a second");
}

}  // namespace

store_watch::watched& store_watch::watched_of(const store_service& service) {
  const std::scoped_lock lock(mutex_);
  auto& state = stores_[service.name];
  if (!state) state = std::make_unique<watched>();
  return *state;
}

observed_store store_watch::last_observation(const store_service& service) {
  auto& state = watched_of(service);
  const std::scoped_lock lock(state.mutex);
  return state.last;
}

observed_store store_watch::observe(const store_service& service) {
  auto& state = watched_of(service);
  const auto now = current_time(shared_);
  auto before = last_observation(service);
  const std::unique_lock asking(state.asking, std::try_to_lock);
  if (!asking.owns_lock()) return before;
  bool is_available = before.health && before.health->available;
  if (!before.health || now - before.health_at > health_lifetime) {
    auto health = service.store->health();
    is_available = health.available;
    const std::scoped_lock lock(state.mutex);
    state.last.health = std::move(health);
    state.last.health_at = current_time(shared_);
  }
  if (is_available && (!before.findings || now - before.findings_at > findings_lifetime)) {
    const std::unique_lock probing(state.probing, std::try_to_lock);
    try {
      if (probing.owns_lock()) (void)examine(service, state);
    } catch (const error&) {  // NOLINT(bugprone-empty-catch)
      // The findings stay unknown. GET .../doctor tells the reason.
    }
  }
  return last_observation(service);
}

probe_report store_watch::examine(const store_service& service, watched& state) {
  auto report = probe(service.database, service.options);
  std::map<severity, std::uint64_t> counts;
  for (const auto& finding : report.findings) ++counts[finding.severity];
  const std::scoped_lock lock(state.mutex);
  state.last.findings = std::move(counts);
  state.last.findings_at = current_time(shared_);
  return report;
}

probe_report store_watch::examine(const store_service& service) {
  auto& state = watched_of(service);
  const std::unique_lock probing(state.probing, std::try_to_lock);
  if (!probing.owns_lock()) refuse_second("the store is being examined");
  return examine(service, state);
}

std::unique_lock<std::mutex> store_watch::begin_question(const store_service& service) {
  std::unique_lock question(watched_of(service).question, std::try_to_lock);
  if (!question.owns_lock()) refuse_second("the store is being read");
  return question;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
