#pragma once

/// \file
/// The value model of keys: every type that an argument of a call can have at run time. The set of
/// types is closed.
///
/// Values are used for typed JSON, decoded MessagePack and custom key generators. C++ arguments
/// become keys without being converted to values: see keyable.hpp.

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace HOLDFAST_NAMESPACE::key {

/// Largest height of a value. A scalar or an empty container has the height 1, a container one more
/// than its highest child. The limit is the same in all schemes, except that CacheKit's auto mode
/// ends at 510 like its reference implementation.
inline constexpr std::size_t max_height = 1024;

class value;

using byte_string = std::vector<std::byte>;

/// An integer outside [-2^63, 2^64-1]: decimal digits with an optional sign. Only the failover
/// scheme supports it.
struct big_integer {
  std::string digits;
  bool operator==(const big_integer&) const = default;
};

/// A decimal number as text. The scale is significant: `1.0` and `1.00` are different values.
struct decimal {
  std::string text;
  bool operator==(const decimal&) const = default;
};

/// One character (a Java `char`, a C++ `char32_t`).
struct character {
  char32_t code_point = 0;
  bool operator==(const character&) const = default;
};

struct uuid {
  std::array<std::uint8_t, 16> bytes{};

  /// Reads `550e8400-e29b-41d4-a716-446655440000`, either case. Throws errc::invalid_argument.
  [[nodiscard]] HOLDFAST_API static uuid parse(std::string_view text);
  /// Lower case with hyphens.
  [[nodiscard]] HOLDFAST_API std::string to_string() const;
  bool operator==(const uuid&) const = default;
};

/// A moment in time, and the UTC offset that it was written with. The offset is part of the key in
/// CacheKit's auto mode only.
struct instant {
  std::chrono::sys_seconds seconds{};
  std::uint32_t nanoseconds = 0;
  std::chrono::microseconds offset{0};
  bool operator==(const instant&) const = default;
};

/// A calendar date without time or zone. Only interop values support it.
struct date {
  std::chrono::year_month_day day{};
  bool operator==(const date&) const = default;
};

/// A time of day without date or zone. Only interop values support it.
struct time_of_day {
  std::chrono::microseconds since_midnight{0};
  bool operator==(const time_of_day&) const = default;
};

struct path {
  enum class flavour : std::uint8_t { posix, windows };
  std::string text;
  flavour style = flavour::posix;
  bool operator==(const path&) const = default;
};
/// The name of the enumerator, for example `posix`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(path::flavour path_flavour) noexcept;

/// A one-dimensional numeric array, elements as little-endian bytes.
struct array_value {
  enum class element : std::uint8_t { i32, i64, f32, f64 };
  element type = element::f64;
  byte_string bytes;
  bool operator==(const array_value&) const = default;
};
/// The name of the enumerator, for example `i32`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(array_value::element element_type) noexcept;

/// A MessagePack extension. decode_value can return it; no scheme accepts it in a key.
struct extension {
  std::int8_t type = 0;
  byte_string bytes;
  bool operator==(const extension&) const = default;
};

/// A Java object, represented by its `toString()`. Failover scheme only.
struct object {
  std::string class_name;
  std::string text;
  bool operator==(const object&) const = default;
};

/// A Java object without a `toString()`, represented by its hash code. Failover scheme with style
/// `exact` only.
struct object_identity {
  std::string class_name;
  std::int32_t hash = 0;
  bool operator==(const object_identity&) const = default;
};

struct list {
  std::vector<value> items;
  bool operator==(const list&) const;
};

/// Items in insertion order. Interop keys sort them; the failover scheme does not.
struct set {
  std::vector<value> items;
  bool operator==(const set&) const;
};

/// Entries in insertion order. Each scheme sorts them by its own rules.
struct map {
  std::vector<std::pair<value, value>> items;
  bool operator==(const map&) const;
};

/// An enumerator. CacheKit keys use its value, failover keys its text. `float_mixin` marks a Python
/// enumeration that derives from float, which CacheKit's reference implementation refuses.
struct enumeration {
  std::shared_ptr<const value> underlying;
  std::optional<std::string> text{};
  bool float_mixin = false;
  bool operator==(const enumeration&) const;
};

/// A Java `Optional`. Failover scheme only. (An empty C++ `std::optional` is null.)
struct boxed_optional {
  std::shared_ptr<const value> item;
  bool operator==(const boxed_optional&) const;
};

/// One value of the model.
/// Thread-safety: like a standard container. Exception safety: strong.
class HOLDFAST_API value {
 public:
  using variant = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, big_integer,
                               float, double, character, std::string, byte_string, list, set, map,
                               uuid, decimal, instant, date, time_of_day, path, enumeration,
                               array_value, boxed_optional, object, object_identity, extension>;

  /// Constructs null.
  value() noexcept = default;
  value(const value&) = default;
  value(value&&) noexcept = default;
  value& operator=(const value&) = default;
  value& operator=(value&&) noexcept = default;
  ~value() {
    if (height_ > 64) dismantle();
  }

  /// Constructs any alternative of the variant. Throws errc::too_deep if a container is higher than
  /// max_height. Non-negative integers are always held as std::uint64_t, negative ones as
  /// std::int64_t.
  value(bool v) : held_(v) {}
  value(int v) : value(std::int64_t{v}) {}
  value(std::int64_t v) {
    if (v < 0) held_ = v;
    else held_ = static_cast<std::uint64_t>(v);
  }
  value(std::uint64_t v) : held_(v) {}
  value(float v) : held_(v) {}
  value(double v) : held_(v) {}
  value(const char* v) : held_(std::string(v)) {}
  value(std::string v) : held_(std::move(v)) {}
  value(std::string_view v) : held_(std::string(v)) {}
  value(byte_string v) : held_(std::move(v)) {}
  value(list v);
  value(set v);
  value(map v);
  value(enumeration v);
  value(boxed_optional v);
  template <class T>
    requires(std::same_as<T, big_integer> || std::same_as<T, character> || std::same_as<T, uuid> ||
             std::same_as<T, decimal> || std::same_as<T, instant> || std::same_as<T, date> ||
             std::same_as<T, time_of_day> || std::same_as<T, path> ||
             std::same_as<T, array_value> || std::same_as<T, object> ||
             std::same_as<T, object_identity> || std::same_as<T, extension>)
  value(T v) : held_(std::move(v)) {}

  [[nodiscard]] const variant& get() const noexcept { return held_; }
  template <class T>
  [[nodiscard]] const T* if_is() const noexcept {
    return std::get_if<T>(&held_);
  }
  [[nodiscard]] bool is_null() const noexcept { return held_.index() == 0; }
  /// The height, as defined at max_height.
  [[nodiscard]] std::size_t height() const noexcept { return height_; }
  /// The name of the type for messages: `integer`, `list` and so on.
  [[nodiscard]] std::string_view type_name() const noexcept;

  bool operator==(const value& other) const;

 private:
  void dismantle() noexcept;

  variant held_{};
  std::uint32_t height_ = 1;
};

}  // namespace HOLDFAST_NAMESPACE::key
