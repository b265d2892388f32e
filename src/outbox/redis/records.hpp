#pragma once

/// \file
/// The texts that the scripts keep, as C++ reads them (records.lua writes them), and reading a
/// structure page by page.

#include <holdfast/outbox/event.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// A claim record.
struct claim_record {
  fence token = 0;
  std::uint32_t deliveries = 0, attempts = 0, replays = 0;
  /// Token of the settlement that parked the event, while followers are to be parked; or 0
  std::int64_t parked_by = 0;
  std::string key{};
};

/// Returns nothing if no script wrote the text. The limits are those of read_claim in records.lua.
[[nodiscard]] std::optional<claim_record> parse_claim_record(std::string_view text);

/// A member of FOLLOWERS.
struct follower_member {
  std::string key{};
  std::int64_t sequence = 0;
  std::int64_t due = 0;
  std::string id{};
};

/// Returns nothing if no script wrote the text.
[[nodiscard]] std::optional<follower_member> parse_follower_member(std::string_view text);

using name_and_value = std::pair<std::string, std::string>;

struct redis_page {
  std::vector<name_and_value> pairs{};
  /// Cursor of the next page; empty: this is the last one
  std::string next{};
};

/// One step of HSCAN or ZSCAN.
[[nodiscard]] redis_page read_scan_page(const redis::client& client, std::string_view scan_command,
                                        const std::string& key, std::string_view cursor,
                                        std::size_t most);

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
