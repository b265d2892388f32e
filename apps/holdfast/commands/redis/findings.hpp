#pragma once

/// \file
/// Judges whether a Redis server is fit for sequences and the outbox.

#include <holdfast/redis.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

enum class severity : std::uint8_t {
  ok,
  /// It works, but the operator should know.
  warn,
  /// Data would be lost, or something does not work.
  bad
};
[[nodiscard]] std::string_view to_string(severity level) noexcept;

struct finding {
  severity level = severity::ok;
  std::string message;
  /// What to do about it; empty if nothing.
  std::string remedy{};
};

/// `cluster`: the URL names a Cluster.
[[nodiscard]] std::vector<finding> examine(const redis::server_report& report, bool cluster);

/// Compares the slots that the server computes with ours. Returns nothing if it is not a node of a
/// Cluster.
[[nodiscard]] std::optional<finding> examine_slots(const redis::client& client,
                                                   const redis::server_report& report);

struct examined_server {
  redis::server_report report;
  std::vector<finding> findings{};
};
/// Examines every server of a client. Throws errors of Redis.
[[nodiscard]] std::vector<examined_server> examine_servers(const redis::client& client);

}  // namespace holdfast::cli
