#pragma once

/// \file
/// What a point may be told about its answers. Every hook is optional; none of them can break a call: what a hook throws is logged,
/// counted, and taken as if it had not been there. The one exception is `unserved`, whose exceptions leave.

#include <holdfast/clock.hpp>
#include <holdfast/failover/answer.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
#include <functional>
#include <optional>

namespace HOLDFAST_NAMESPACE {

/// What a result means.
enum class result_kind : std::uint8_t {
  store,   ///< a good answer: keep it
  absent,  ///< it says that there is nothing: keep that, so that dead data does not come back
  ignore   ///< do not keep it; what is stored stays
};

/// Called on the thread of the call, from several threads at once.
template <class T>
struct point_hooks {
  /// Looks at a live value. With this hook, an answer that was stored as absent is served as an empty one.
  std::function<result_kind(const T&)> result{};
  /// The last moment at which this value may be served; instead of the point's expiry.
  std::function<timestamp(const T&, timestamp now)> expiry{};
  /// Writes provenance into types that carry it (up_to_date, as_of): of live values after they were encoded, and of stored ones.
  std::function<void(T&, const provenance&)> enrich{};
  /// Sees every recovery, also one that found nothing; may change the value, make one or take it away.
  std::function<void(std::optional<T>&, const provenance&)> recovered{};
  /// For exception_policy::never_throw.
  std::function<T(const provenance&)> default_value{};
  /// For exception_policy::custom: gives a value, or nothing for an empty answer, or throws.
  std::function<std::optional<T>(const provenance&)> unserved{};
};

}  // namespace HOLDFAST_NAMESPACE
