#pragma once

/// \file
/// Reading what scripts answer.

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/version.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::outboxes {

/// A whole number in text, also where Redis writes a score as 1.7e12.
[[nodiscard]] inline std::int64_t number_in(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem == std::errc{} && end == text.data() + text.size()) return value;
  double real = 0;
  const auto [real_end, real_problem] = std::from_chars(text.data(), text.data() + text.size(), real);
  constexpr double limit = 9e18;
  if (real_problem == std::errc{} && real_end == text.data() + text.size() && !std::isnan(real))
    return static_cast<std::int64_t>(std::clamp(real, -limit, limit));
  throw error(errc::malformed, "Redis answered '" + std::string(text.substr(0, 40)) + "' where a number belongs");
}

[[nodiscard]] inline std::int64_t number_in(const redis::reply& answer) {
  return answer.is_integer() ? answer.integer() : number_in(std::string_view(answer.text()));
}

/// A time in milliseconds. A score that no script wrote may be infinite: at most the year 9999.
[[nodiscard]] inline timestamp moment_in(std::string_view ms) {
  constexpr std::int64_t last_moment = 253'402'300'799'999;
  return timestamp(std::chrono::milliseconds(std::clamp<std::int64_t>(number_in(ms), -last_moment, last_moment)));
}

/// Of an id, which is a UUID.
inline constexpr std::size_t id_length = 36;

/// `101` as yes, no, yes.
[[nodiscard]] inline std::vector<bool> marks_in(const redis::reply& answer) {
  std::vector<bool> result;
  for (const char c : answer.text()) result.push_back(c == '1');
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::outboxes
