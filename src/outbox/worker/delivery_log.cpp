#include "outbox/worker/delivery_log.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

constexpr std::chrono::minutes warning_interval{1};
/// Further types share one state: a publisher could invent types without end.
constexpr std::size_t most_logged_types = 64;
constexpr const char* other_types = "(other types)";

}  // namespace

void delivery_log::record(const std::string& type, const outcome& outcome) {
  if (!context_.log.listened()) return;
  const bool answered =
      outcome.code() == outcome::kind::done || outcome.code() == outcome::kind::permanent;
  if (!answered) return record_failure(type, outcome);
  if (type_count_.load(std::memory_order_relaxed) > 0) record_success(type);
}

void delivery_log::record_failure(const std::string& type, const outcome& outcome) {
  const auto now = context_.now();
  std::uint64_t failures = 0;
  bool first = false;
  std::string name = type;
  {
    const std::scoped_lock lock(mutex_);
    auto position = types_.find(type);
    if (position == types_.end()) {
      if (types_.size() >= most_logged_types) name = other_types;
      position = types_.try_emplace(name).first;
      type_count_ = types_.size();
    }
    auto& state = position->second;
    first = state.total == 0;
    ++state.failures;
    ++state.total;
    if (now < state.next_warning) return;
    state.next_warning = now + warning_interval;
    state.warned = true;
    failures = std::exchange(state.failures, 0);
  }
  const std::string count = std::to_string(failures);
  context_.log.write(log_level::warning,
                     first ? "a delivery failed; it is tried again"
                           : "deliveries of a type still fail; they are tried again",
                     {{"type", name},
                      {"outcome", to_string(outcome.code())},
                      {"failures", count},
                      {"why", outcome.reason()}});
}

void delivery_log::record_success(const std::string& type) {
  std::uint64_t total = 0;
  {
    const std::scoped_lock lock(mutex_);
    const auto position = types_.find(type);
    if (position == types_.end()) return;
    auto& state = position->second;
    if (!std::exchange(state.warned, false)) {
      if (context_.now() < state.next_warning) return;
      types_.erase(position);
      type_count_ = types_.size();
      return;
    }
    total = std::exchange(state.total, 0);
    state.failures = 0;
  }
  const std::string count = std::to_string(total);
  context_.log.write(log_level::info, "deliveries of a type succeed again",
                     {{"type", type}, {"failures", count}});
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
