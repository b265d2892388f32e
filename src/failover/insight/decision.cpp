#include <holdfast/error.hpp>
#include <holdfast/failover/decision.hpp>

#include <array>
#include <mutex>
#include <ranges>
#include <unordered_map>
#include <utility>

namespace HOLDFAST_NAMESPACE {

std::string_view to_string(decision_rule rule) noexcept {
  constexpr std::array<std::string_view, 8> names{"live",        "recovered",   "soft_expiry",
                                                  "drilled",     "substituted", "passed",
                                                  "invalidated", "unserved"};
  const auto index = static_cast<std::size_t>(rule);
  return index < names.size() ? names[index] : "unknown";
}

std::string_view to_string(miss_reason reason) noexcept {
  constexpr std::array<std::string_view, 9> names{"none",    "no_key",      "not_found",
                                                  "expired", "not_allowed", "undecodable",
                                                  "older",   "read_failed", "read_late"};
  const auto index = static_cast<std::size_t>(reason);
  return index < names.size() ? names[index] : "unknown";
}

std::string decision_ref(std::uint64_t number) {
  if (number == 0) return {};
  // Without letters that look like digits.
  constexpr std::string_view digits = "0123456789abcdefghjkmnpqrstvwxyz";
  std::string ref(8, '0');
  for (char& digit : ref | std::views::reverse) {
    digit = digits[number % digits.size()];
    number /= digits.size();
  }
  return ref;
}

/// A ring: `next` is the place of the oldest decision, once the ring is full.
struct decision_log::state {
  std::size_t capacity = 0;
  std::mutex mutex{};
  std::vector<decision> ring{};
  std::size_t next = 0;
  std::unordered_map<std::string, std::size_t> places{};
};

decision_log::decision_log(std::size_t capacity) : state_(std::make_unique<state>()) {
  if (capacity == 0)
    throw error(errc::invalid_argument, "a decision log must have a capacity of at least 1");
  state_->capacity = capacity;
}

decision_log::~decision_log() = default;

void decision_log::record(decision reported) {
  auto& log = *state_;
  const std::scoped_lock lock(log.mutex);
  log.places.insert_or_assign(reported.ref, log.next);
  if (log.ring.size() < log.capacity) {
    log.ring.push_back(std::move(reported));
  } else {
    auto& oldest = log.ring[log.next];
    if (const auto it = log.places.find(oldest.ref);
        it != log.places.end() && it->second == log.next && oldest.ref != reported.ref)
      log.places.erase(it);
    oldest = std::move(reported);
  }
  log.next = (log.next + 1) % log.capacity;
}

std::optional<decision> decision_log::find(std::string_view ref) const {
  const std::scoped_lock lock(state_->mutex);
  const auto it = state_->places.find(std::string(ref));
  if (it == state_->places.end()) return std::nullopt;
  return state_->ring[it->second];
}

std::vector<decision> decision_log::latest(std::string_view point, std::size_t limit) const {
  const std::scoped_lock lock(state_->mutex);
  std::vector<decision> result;
  const auto size = state_->ring.size();
  for (std::size_t i = 1; i <= size && result.size() < limit; ++i) {
    const auto& each = state_->ring[(state_->next + size - i) % size];
    if (point.empty() || each.point == point) result.push_back(each);
  }
  return result;
}

}  // namespace HOLDFAST_NAMESPACE
