#pragma once

/// \file
/// The C++ types that can be part of a key.
///
/// | C++ | in a key |
/// | --- | --- |
/// | `nullptr`, `std::nullopt`, `std::monostate`, an empty `std::optional` | null |
/// | `bool`, integers up to 64 bits, `float`, `double` | the same |
/// | `char`, `char32_t` | one character |
/// | types that convert to `std::string_view` | text, which must be well-formed UTF-8 |
/// | ranges of `std::byte` | bytes |
/// | `std::vector`, `std::span`, `std::array`, any other forward range; `std::pair`, `std::tuple` | list |
/// | `std::map`, `std::unordered_map` and alike | map |
/// | `std::set`, `std::unordered_set` and alike | set (CacheKit's auto mode has none) |
/// | `std::chrono::sys_time` | instant |
/// | `std::filesystem::path` | path |
/// | an enumeration | its underlying value (CacheKit); the failover scheme needs a text, see below |
/// | `key::array(span)` | numeric array |
/// | `key::uuid`, `key::decimal`, `key::value`, ... | the types of value.hpp |
///
/// To add a type of your own, define one function in its namespace that returns any of the above:
///
///     auto holdfast_key(const money& m) { return std::tuple(m.currency, m.cents); }
///
/// Types without a stable form do not compile, and the message says why: pointers, local times,
/// durations, structs without a `holdfast_key`, and hash containers where their order would show.

#include <holdfast/key/value.hpp>
#include <holdfast/key/writer.hpp>

#include <concepts>
#include <cstdint>
#include <ranges>
#include <span>
#include <string_view>

namespace HOLDFAST_NAMESPACE::key {

namespace detail {
template <class T>
struct is_keyable;
}

/// Whether `holdfast_key` or the table above covers T itself. The elements of T are checked when a
/// key is made; the compiler's message says what is wrong.
template <class T>
concept keyable = detail::is_keyable<T>::value;

/// A keyword argument of CacheKit's auto mode: `kw("active", true)`. Refers to the value: use it
/// only in the call that makes the key.
template <class T>
struct keyword {
  std::string_view name;
  const T& item;
};
template <class T>
[[nodiscard]] keyword<T> kw(std::string_view name, const T& item) {
  return {name, item};
}

/// A numeric array for CacheKit's auto mode (`__array_v1__`). Refers to the elements. Without
/// `array`, a vector or span of numbers is a list.
template <class T>
  requires(std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t> ||
           std::same_as<T, float> || std::same_as<T, double>)
struct array_view {
  std::span<const T> elements;
};
template <std::ranges::contiguous_range R>
[[nodiscard]] auto array(const R& elements) {
  using element = std::ranges::range_value_t<R>;
  return array_view<element>{
      std::span<const element>(std::ranges::data(elements), std::ranges::size(elements))};
}

/// Converts a C++ value to a run-time value. Custom key generators receive their arguments in this
/// form.
template <class T>
[[nodiscard]] value to_value(const T& v);

}  // namespace HOLDFAST_NAMESPACE::key

#include <holdfast/key/detail/write_argument.hpp>
