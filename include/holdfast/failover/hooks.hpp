#pragma once

/// \file
/// Hooks of a point. Every hook is optional. An exception from a hook is logged and counted, and
/// the call continues without the hook. Only exceptions of `unserved` reach the caller.

#include <holdfast/clock.hpp>
#include <holdfast/failover/answer.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// What to do with a live result.
enum class result_kind : std::uint8_t {
  store,   ///< store it
  absent,  ///< store a tombstone, so that deleted data is not served again
  ignore   ///< do not store it; the stored answer stays
};
/// The name of the enumerator, for example `store`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(result_kind kind) noexcept;

/// Hooks run on the thread of the call, from several threads at the same time.
template <class T>
struct point_hooks {
  /// Classifies a live value. A point with this hook serves a tombstone as an empty answer.
  std::function<result_kind(const T&)> result{};
  /// Last moment at which this value may be served. Replaces the expiry of the point.
  std::function<timestamp(const T&, timestamp now)> expiry{};
  /// Copies provenance into value types with fields for it. Runs for live values, after they were
  /// encoded, and for stored values.
  std::function<void(T&, const provenance&)> enrich{};
  /// Runs after every recovery, including one without a result. May change, add or remove the
  /// value.
  std::function<void(std::optional<T>&, const provenance&)> recovered{};
  /// For exception_policy::never_throw.
  std::function<T(const provenance&)> default_value{};
  /// For exception_policy::custom. Returns a value, returns nothing for an empty answer, or throws.
  std::function<std::optional<T>(const provenance&)> unserved{};
};

}  // namespace HOLDFAST_NAMESPACE
