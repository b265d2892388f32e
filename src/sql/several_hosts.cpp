#include "sql/several_hosts.hpp"

#include <holdfast/error.hpp>

#include "sql/call_deadline.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sql {

namespace {

using namespace std::chrono_literals;

/// A server in the same data center accepts a login within a few milliseconds.
constexpr std::chrono::milliseconds longest_share = 2s;
/// Afterwards a silent host is tried in its place again, where it may cost a share of the time.
constexpr auto silence_remembered = 30s;

/// The hosts in the order of the URL, with those that were silent at the end.
std::vector<std::size_t> order_of_attempts(std::span<const std::string> addresses,
                                           silent_hosts& silent) {
  std::vector<std::size_t> order;
  std::vector<std::size_t> avoided;
  for (std::size_t i = 0; i < addresses.size(); ++i)
    (silent.contains(addresses[i]) ? avoided : order).push_back(i);
  order.insert(order.end(), avoided.begin(), avoided.end());
  return order;
}

std::chrono::milliseconds share_of(const call_deadline& deadline, std::size_t remaining_hosts) {
  const auto remaining = std::max(
      std::chrono::ceil<std::chrono::milliseconds>(deadline.expires - call_deadline::clock::now()),
      std::chrono::milliseconds(1));
  if (remaining_hosts == 1) return remaining;
  return std::clamp<std::chrono::milliseconds>(
      remaining / static_cast<std::int64_t>(remaining_hosts), 1ms, longest_share);
}

/// The error for hosts none of which can be used.
error none_usable(const std::vector<error>& failures) {
  const auto is_transient = [](const error& failure) { return failure.transient(); };
  const auto is_timeout = [](const error& failure) { return failure.code() == errc::timeout; };
  const bool transient = std::ranges::any_of(failures, is_transient);
  const auto code = std::ranges::all_of(failures, is_timeout) ? errc::timeout
                    : transient                               ? errc::unavailable
                                                              : failures.front().code();
  std::string message =
      "none of the " + std::to_string(failures.size()) + " hosts of the URL can be used: ";
  for (const auto& failure : failures)
    message.append(&failure == &failures.front() ? "" : "; ").append(failure.message());
  return {code, message, {.backend_code = failures.back().backend_code(), .transient = transient}};
}

}  // namespace

void silent_hosts::add(const std::string& address) {
  const std::scoped_lock lock(mutex_);
  silent_since_[address] = std::chrono::steady_clock::now();
}

void silent_hosts::remove(const std::string& address) {
  const std::scoped_lock lock(mutex_);
  silent_since_.erase(address);
}

bool silent_hosts::contains(const std::string& address) {
  const std::scoped_lock lock(mutex_);
  const auto position = silent_since_.find(address);
  if (position == silent_since_.end()) return false;
  if (std::chrono::steady_clock::now() - position->second < silence_remembered) return true;
  silent_since_.erase(position);
  return false;
}

std::unique_ptr<connection> connect_to_first(std::span<const std::string> addresses,
                                             const connect_limits& limits, silent_hosts& silent,
                                             const connect_attempt& attempt) {
  if (addresses.size() == 1) return attempt(0, limits.each.value_or(limits.all));
  const call_deadline deadline(limits.all);
  const auto order = order_of_attempts(addresses, silent);
  std::vector<error> failures;
  failures.reserve(order.size());
  for (const auto host : order) {
    const auto limit = limits.each.value_or(share_of(deadline, order.size() - failures.size()));
    try {
      auto connected = attempt(host, limit);
      silent.remove(addresses[host]);
      return connected;
    } catch (const error& failure) {
      if (failure.code() == errc::invalid_argument) throw;  // the URL is wrong, not a host
      if (failure.code() == errc::timeout) silent.add(addresses[host]);
      failures.push_back(failure);
    }
  }
  throw none_usable(failures);
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
