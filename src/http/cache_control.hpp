#pragma once

#include "http/fields.hpp"

#include <chrono>
#include <optional>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::http {

/// The directives of Cache-Control, of a request or a response (RFC 9111, section 5.2; RFC 5861).
/// An age that is not a number counts as 0, which is the cautious reading; of several, the smallest
/// counts. An age above 2^31 counts as 2^31.
struct cache_control {
  std::optional<std::chrono::seconds> max_age{};
  std::optional<std::chrono::seconds> s_maxage{};
  std::optional<std::chrono::seconds> stale_if_error{};
  std::optional<std::chrono::seconds> stale_while_revalidate{};
  std::optional<std::chrono::seconds> min_fresh{};
  /// Without a number: any age, the largest number.
  std::optional<std::chrono::seconds> max_stale{};
  bool no_store = false;
  bool no_cache = false;    ///< also if it is limited to some fields
  bool is_private = false;  ///< also if it is limited to some fields
  bool is_public = false;
  bool must_revalidate = false;
  bool proxy_revalidate = false;
  bool must_understand = false;
  bool no_transform = false;
  bool only_if_cached = false;
  bool immutable = false;

  /// Adds the directives of one field. Unknown ones are ignored.
  void add(std::string_view value);
  [[nodiscard]] static cache_control of(const fields& source);
};

}  // namespace HOLDFAST_NAMESPACE::detail::http
