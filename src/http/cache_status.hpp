#pragma once

#include <holdfast/version.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::http {

/// What a cache did with a request: one member of Cache-Status (RFC 9211).
struct cache_status {
  /// Why a request was forwarded.
  enum class forward_reason : std::uint8_t {
    bypass,
    method,
    uri_miss,
    vary_miss,
    miss,
    request,
    stale,
    partial
  };
  /// Name of the cache; a token.
  std::string cache = "holdfast";
  /// Answered without forwarding. Excludes `forwarded`.
  bool hit = false;
  std::optional<forward_reason> forwarded{};
  /// Status of the upstream, if it differs from the response's.
  std::optional<int> forwarded_status{};
  /// Remaining freshness in seconds; negative if the answer is stale.
  std::optional<std::int64_t> time_to_live{};
  bool stored = false;
  bool collapsed = false;
  /// Name of the stored answer.
  std::string key{};
  /// A token such as `breaker-open`, or other text.
  std::string detail{};
};

/// Returns the field's value. `previous` is the value that the response had from caches nearer to
/// the origin; it stays in front (RFC 9211, section 2). Throws errc::invalid_argument if a text has
/// a character outside printable ASCII, or both `hit` and `forwarded` are set.
[[nodiscard]] std::string to_field(const cache_status& status, std::string_view previous = {});

}  // namespace HOLDFAST_NAMESPACE::detail::http
