#include "serve/auth/rate_limit.hpp"

#include <holdfast/error.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds sign_in_interval = std::chrono::seconds(12);
constexpr std::uint32_t sign_in_burst = 5;

/// The address of a client, as the limit counts it.
std::string limited_network(std::string_view address) {
  std::string text(address);
  in6_addr parsed{};
  if (::inet_pton(AF_INET6, text.c_str(), &parsed) != 1 || IN6_IS_ADDR_V4MAPPED(&parsed))
    return text;
  return "/64:" + std::string(reinterpret_cast<const char*>(&parsed), 8);
}

}  // namespace

std::optional<nanoseconds> rate_bucket::admit(time_point now, nanoseconds interval,
                                              std::uint32_t burst) noexcept {
  const std::int64_t time = nanoseconds(now.time_since_epoch()).count();
  const std::int64_t step = interval.count();
  const std::int64_t tolerance = step * (std::int64_t{burst} - 1);
  auto full_again = full_again_.load(std::memory_order_relaxed);
  for (;;) {
    const auto start = std::max(full_again, time);
    if (start - time > tolerance) return nanoseconds(start - time - tolerance);
    if (full_again_.compare_exchange_weak(full_again, start + step, std::memory_order_relaxed))
      return std::nullopt;
  }
}

std::optional<nanoseconds> admit_at_rate(rate_bucket& bucket, rate_bucket::time_point now,
                                         std::uint32_t rate) noexcept {
  if (rate == 0) return std::nullopt;
  return bucket.admit(now, nanoseconds(1'000'000'000 / rate), rate * 2);
}

std::uint32_t parse_rate(std::string_view text) {
  std::uint32_t rate = 0;
  const std::string digits(text.substr(0, text.find('/')));
  const auto* const end = digits.data() + digits.size();
  const auto [stop, status] = std::from_chars(digits.data(), end, rate);
  if (status != std::errc{} || stop != end || text.substr(digits.size()) != "/s" || rate == 0 ||
      rate > 1'000'000)
    throw error(errc::invalid_argument,
                "the rate must be a number of requests in a second, from 1/s to 1000000/s",
                {.path = "rate"});
  return rate;
}

std::optional<nanoseconds> sign_in_limit::admit(std::string_view address,
                                                rate_bucket::time_point now) {
  constexpr auto tolerance = sign_in_interval * (sign_in_burst - 1);
  auto network = limited_network(address);
  const std::scoped_lock lock(mutex_);
  if (const auto it = full_again_.find(network); it != full_again_.end()) {
    const auto start = std::max(it->second, now);
    if (start - now > tolerance) return start - now - tolerance;
    it->second = start + sign_in_interval;
    return std::nullopt;
  }
  if (full_again_.size() >= max_addresses) make_room(now);
  full_again_.emplace(std::move(network), now + sign_in_interval);
  return std::nullopt;
}

/// Forgets the addresses that may sign in as often as new ones, or else the one that is next.
void sign_in_limit::make_room(rate_bucket::time_point now) {
  std::erase_if(full_again_, [now](const auto& entry) { return entry.second <= now; });
  if (full_again_.size() < max_addresses) return;
  full_again_.erase(
      std::ranges::min_element(full_again_, {}, [](const auto& entry) { return entry.second; }));
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
