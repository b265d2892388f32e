#include "database/instances/state_text.hpp"

#include "base/utf8.hpp"
#include "key/json_string.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::instances {

namespace {

/// An object whose members are texts, numbers and booleans.
class object_text {
 public:
  object_text& add(std::string_view name, std::string_view value) {
    begin(name);
    key::append_json_string(text_, value.substr(0, prefix_size(value, 300)));
    return *this;
  }
  object_text& add_number(std::string_view name, std::uint64_t value) {
    begin(name);
    text_ += std::to_string(value);
    return *this;
  }
  object_text& add_flag(std::string_view name, bool value) {
    return add_raw(name, value ? "true" : "false");
  }
  object_text& add_raw(std::string_view name, std::string_view json) {
    begin(name);
    text_ += json;
    return *this;
  }
  [[nodiscard]] std::string finish() { return std::move(text_) + "}"; }

 private:
  void begin(std::string_view name) {
    text_ += text_.size() > 1 ? "," : "";
    key::append_json_string(text_, name);
    text_ += ':';
  }
  std::string text_ = "{";
};

template <class Numbers>
struct counter_of {
  std::string_view name;
  std::uint64_t Numbers::* member;
};

using numbers = point_numbers;
constexpr std::array<counter_of<numbers>, 33> point_counters{{
    {"started", &numbers::started},
    {"live", &numbers::live},
    {"stale", &numbers::stale},
    {"fresh", &numbers::fresh},
    {"substituted", &numbers::substituted},
    {"failed", &numbers::failed},
    {"passed", &numbers::passed},
    {"invalidated", &numbers::invalidated},
    {"abandoned", &numbers::abandoned},
    {"stored", &numbers::stored},
    {"absent", &numbers::absent},
    {"ignored", &numbers::ignored},
    {"tooLarge", &numbers::too_large},
    {"storeFailed", &numbers::store_failed},
    {"notFound", &numbers::not_found},
    {"expired", &numbers::expired},
    {"notAllowed", &numbers::not_allowed},
    {"undecodable", &numbers::undecodable},
    {"older", &numbers::older},
    {"readFailed", &numbers::read_failed},
    {"readLate", &numbers::read_late},
    {"late", &numbers::late},
    {"lateStored", &numbers::late_stored},
    {"retries", &numbers::retries},
    {"noBudget", &numbers::no_budget},
    {"breakerRefused", &numbers::breaker_refused},
    {"limitRefused", &numbers::limit_refused},
    {"fullRefused", &numbers::full_refused},
    {"coalesced", &numbers::coalesced},
    {"refreshed", &numbers::refreshed},
    {"refreshFailed", &numbers::refresh_failed},
    {"partial", &numbers::partial},
    {"hookFailed", &numbers::hook_failed},
}};

/// Counters that are 0 are left out, so that many points fit.
template <class Numbers, std::size_t Size>
std::string counters_text(const Numbers& counts,
                          const std::array<counter_of<Numbers>, Size>& counters) {
  object_text object;
  for (const auto& counter : counters) {
    if (const auto value = counts.*(counter.member); value != 0)
      object.add_number(counter.name, value);
  }
  return object.finish();
}

std::string point_text(const point_status& status) {
  return object_text()
      .add("name", status.name)
      .add("domain", status.domain)
      .add("expiry", status.expiry)
      .add_flag("enabled", status.enabled)
      .add("breaker", to_string(status.breaker))
      .add_number("running", status.running)
      .add_raw("numbers", counters_text(status.numbers, point_counters))
      .finish();
}

std::string health_text(const engine_health& health) {
  return object_text()
      .add_flag("healthy", health.healthy)
      .add("problem", health.problem)
      .add_flag("storeAnswers", health.store_answers)
      .add_number("running", health.running)
      .add_number("unsaved", health.unsaved)
      .add_number("oldestUnsavedUs", static_cast<std::uint64_t>(
                                         std::max<std::int64_t>(health.oldest_unsaved.count(), 0)))
      .finish();
}

/// The members that every state begins with.
object_text begin_state(std::string_view kind) {
  object_text object;
  object.add("kind", kind).add("version", HOLDFAST_VERSION_STRING);
  return object;
}

}  // namespace

std::string state_text(const engine& source) {
  auto state = begin_state("engine");
  state.add_raw("health", health_text(source.health()));
  const std::size_t room = max_state_bytes - 4'096;  // the rest is less
  std::string points = "[";
  std::uint64_t left_out = 0;
  for (const auto& status : source.points()) {
    const auto text = point_text(status);
    if (points.size() + text.size() > room) {
      ++left_out;
      continue;
    }
    points.append(points.size() > 1 ? "," : "").append(text);
  }
  state.add_raw("points", points + "]");
  if (left_out != 0) state.add_number("pointsLeftOut", left_out);
  return state.finish();
}

std::string state_text(const worker& source) {
  using counts = worker_numbers;
  constexpr std::array<counter_of<counts>, 15> worker_counters{{
      {"claims", &counts::claims},
      {"deliveries", &counts::deliveries},
      {"done", &counts::done},
      {"retried", &counts::retried},
      {"throttled", &counts::throttled},
      {"parked", &counts::parked},
      {"released", &counts::released},
      {"fenced", &counts::fenced},
      {"inDoubt", &counts::in_doubt},
      {"timedOut", &counts::timed_out},
      {"unhandled", &counts::unhandled},
      {"tickets", &counts::tickets},
      {"wakes", &counts::wakes},
      {"errors", &counts::errors},
      {"inFlight", &counts::in_flight},
  }};
  const auto health = source.health();
  std::string open = "[";
  for (const auto& type : health.open) {
    if (open.size() > max_state_bytes / 2) break;
    if (open.size() > 1) open += ',';
    key::append_json_string(open, type);
  }
  return begin_state("worker")
      .add_raw("health",
               object_text()
                   .add_flag("healthy", health.available)
                   .add("problem", health.problem)
                   .add_number("lanes", health.locks)
                   .add_number("depth", health.depth)
                   .add_number("parked", health.parked)
                   .add_number("overdueMs", static_cast<std::uint64_t>(
                                                std::max<std::int64_t>(health.overdue.count(), 0)))
                   .add_raw("openBreakers", open + "]")
                   .finish())
      .add_raw("numbers", counters_text(source.count(), worker_counters))
      .finish();
}

std::string state_text(const cleanup& source) {
  using counts = cleanup_state;
  constexpr std::array<counter_of<counts>, 4> cleanup_counters{{
      {"runs", &counts::runs},
      {"removed", &counts::removed},
      {"skipped", &counts::skipped},
      {"failures", &counts::failures},
  }};
  const auto current = source.state();
  object_text health;
  const bool failed = current.last && (current.last->result == cleanup_result::failed ||
                                       current.last->result == cleanup_result::lost);
  health.add_flag("healthy", !failed).add_flag("running", current.running);
  if (current.last) {
    health.add("last", to_string(current.last->result)).add("problem", current.last->problem);
    health.add("holder", current.last->holder);
  }
  return begin_state("cleanup")
      .add_raw("health", health.finish())
      .add_raw("numbers", counters_text(current, cleanup_counters))
      .finish();
}

}  // namespace HOLDFAST_NAMESPACE::detail::instances
