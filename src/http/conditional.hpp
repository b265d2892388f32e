#pragma once

/// \file
/// Conditional requests and ranges (RFC 9110, sections 13 and 14).

#include "http/fields.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::http {

/// `W/"abc"`
struct entity_tag {
  bool weak = false;
  std::string_view opaque{};  ///< with its quotes
};

[[nodiscard]] std::optional<entity_tag> parse_entity_tag(std::string_view text) noexcept;
/// Both must be strong.
[[nodiscard]] bool matches_strongly(const entity_tag& a, const entity_tag& b) noexcept;
[[nodiscard]] bool matches_weakly(const entity_tag& a, const entity_tag& b) noexcept;

/// The validators of what a server would send.
struct validators {
  std::optional<entity_tag> tag{};
  std::optional<std::chrono::sys_seconds> last_modified{};
};

enum class precondition : std::uint8_t {
  proceed,
  not_modified,  ///< answer 304
  failed         ///< answer 412
};

/// Evaluates If-Match, If-Unmodified-Since, If-None-Match and If-Modified-Since in the order of RFC
/// 9110, section 13.2.2. `current` is empty if the resource does not exist. A field that is
/// ill-formed is ignored if it is a date; If-Match and If-None-Match that are ill-formed match
/// nothing.
[[nodiscard]] precondition evaluate(std::string_view method, const fields& request,
                                    const std::optional<validators>& current,
                                    std::chrono::sys_seconds now);

/// Bytes `first` to `last`, both included.
struct byte_range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  bool operator==(const byte_range&) const = default;
};

enum class range_status : std::uint8_t {
  whole,         ///< there is no usable Range: send everything with 200
  partial,       ///< send `ranges` with 206
  unsatisfiable  ///< answer 416
};

struct range_request {
  range_status status = range_status::whole;
  std::vector<byte_range> ranges{};
};

/// Reads Range of a request for content of `size` bytes. If-Range must match, and so must the unit
/// `bytes`; an ill-formed Range, or one of more than 16 parts, is ignored.
[[nodiscard]] range_request read_range(std::string_view method, const fields& request,
                                       const validators& current, std::uint64_t size,
                                       std::chrono::sys_seconds now);

/// The value of Content-Range: `bytes 0-4/100`.
[[nodiscard]] std::string content_range(const byte_range& range, std::uint64_t size);

}  // namespace HOLDFAST_NAMESPACE::detail::http
