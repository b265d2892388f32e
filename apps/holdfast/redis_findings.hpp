#pragma once

/// \file
/// What a report of a Redis server means for those who keep promises on it.

#include <holdfast/redis.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

enum class severity : std::uint8_t {
  ok,
  warn,  ///< it works, but somebody should know
  bad    ///< something would be lost, or does not work
};
[[nodiscard]] std::string_view to_string(severity level) noexcept;

struct finding {
  severity level = severity::ok;
  std::string what;
  std::string cure{};  ///< what to do about it; empty when nothing
};

/// `cluster`: the server was reached as part of one.
[[nodiscard]] std::vector<finding> examine(const redis::server_report& report, bool cluster);

/// Does the server put keys into the slots that we compute? Nothing when it is not part of a Cluster.
[[nodiscard]] std::optional<finding> examine_slots(const redis::client& with, const redis::server_report& report);

}  // namespace holdfast::cli
