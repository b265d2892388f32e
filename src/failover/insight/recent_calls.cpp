#include "failover/insight/recent_calls.hpp"

#include <random>

namespace HOLDFAST_NAMESPACE::detail::failover {

std::uint32_t random_number() noexcept {
  // xorshift: a sample needs no better quality, and it runs for every call of an observed point.
  thread_local std::uint64_t state = (std::uint64_t{std::random_device{}()} << 32U) | 1U;
  state ^= state << 13U;
  state ^= state >> 7U;
  state ^= state << 17U;
  return static_cast<std::uint32_t>(state >> 32U);
}

recent_calls::period& recent_calls::period_of(std::int64_t number) {
  auto& result = periods_[static_cast<std::size_t>(number) % period_count];
  if (result.number.load(std::memory_order_acquire) == number) return result;
  const std::scoped_lock lock(result.mutex);
  if (result.number.load(std::memory_order_relaxed) == number) return result;
  result.calls.store(0, std::memory_order_relaxed);
  result.rows.clear();
  for (auto& count : result.results) count.store(0, std::memory_order_relaxed);
  result.number.store(number, std::memory_order_release);
  return result;
}

void recent_calls::record_call(timestamp now, std::string_view key, std::string_view realm) {
  const auto number = number_of(now);
  auto& current = period_of(number);
  const auto calls = current.calls.fetch_add(1, std::memory_order_relaxed) + 1;
  // Every call of the period has the same chance to be represented (reservoir sampling).
  if (calls > keys_per_period && random_number() % calls >= keys_per_period) return;
  const std::unique_lock lock(current.mutex, std::try_to_lock);
  if (!lock || current.number.load(std::memory_order_relaxed) != number) return;
  if (current.rows.size() < keys_per_period) {
    current.rows.push_back({std::string(key), std::string(realm)});
    return;
  }
  auto& replaced = current.rows[random_number() % keys_per_period];
  replaced.key.assign(key);
  replaced.realm.assign(realm);
}

void recent_calls::record_coverage(timestamp now, coverage_result result) noexcept {
  period_of(number_of(now))
      .results[static_cast<std::size_t>(result)]
      .fetch_add(1, std::memory_order_relaxed);
}

template <class Use>
void recent_calls::each(timestamp now, Use use) const {
  const auto last = number_of(now);
  for (const auto& each : periods_) {
    const std::scoped_lock lock(each.mutex);
    const auto number = each.number.load(std::memory_order_acquire);
    if (number <= last && last - number < static_cast<std::int64_t>(period_count)) use(each);
  }
}

std::vector<recent_calls::sampled_key> recent_calls::keys(timestamp now) const {
  std::vector<sampled_key> result;
  each(now, [&](const period& current) {
    if (current.rows.empty()) return;
    const auto weight = static_cast<double>(current.calls.load(std::memory_order_relaxed)) /
                        static_cast<double>(current.rows.size());
    for (const auto& row : current.rows) result.push_back({row.key, row.realm, weight});
  });
  return result;
}

std::uint64_t recent_calls::calls(timestamp now) const {
  std::uint64_t sum = 0;
  each(now, [&](const period& current) { sum += current.calls.load(std::memory_order_relaxed); });
  return sum;
}

recent_calls::coverage_counts recent_calls::coverage(timestamp now) const {
  coverage_counts sums{};
  each(now, [&](const period& current) {
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] += current.results[i].load(std::memory_order_relaxed);
  });
  return sums;
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
