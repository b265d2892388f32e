#pragma once

/// \file
/// Which C++ types can be part of a key, and how they get there.
///
/// | C++ | in a key |
/// | --- | --- |
/// | `nullptr`, `std::nullopt`, `std::monostate`, an empty `std::optional` | null |
/// | `bool`, integers up to 64 bits, `float`, `double` | themselves |
/// | `char`, `char32_t` | one character |
/// | whatever converts to `std::string_view` | text, which must be well-formed UTF-8 |
/// | ranges of `std::byte` | bytes |
/// | `std::vector`, `std::span`, `std::array`, any other forward range; `std::pair`, `std::tuple` | list |
/// | `std::map`, `std::unordered_map` and alike | map |
/// | `std::set`, `std::unordered_set` and alike | set (CacheKit's auto mode has none) |
/// | `std::chrono::sys_time` | instant |
/// | `std::filesystem::path` | path |
/// | an enumeration | its underlying value (CacheKit); the failover scheme wants a text, see below |
/// | `key::array(span)` | numeric array |
/// | `key::uuid`, `key::decimal`, `key::value`, ... | the model's own types |
///
/// A type of your own joins with one function in its own namespace, returning anything above:
///
///     auto holdfast_key(const money& m) { return std::tuple(m.currency, m.cents); }
///
/// What has no stable meaning in a key does not compile, and the message says why: pointers, local times,
/// durations, plain structs, hash containers where their order would show.

#include <holdfast/key/value.hpp>
#include <holdfast/key/writer.hpp>

#include <array>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace HOLDFAST_NAMESPACE::key {

/// A keyword argument of CacheKit's auto mode: `kw("active", true)`. Refers to the value; use it inside the call that makes the key.
template <class T>
struct keyword {
  std::string_view name;
  const T& item;
};
template <class T>
[[nodiscard]] keyword<T> kw(std::string_view name, const T& item) {
  return {name, item};
}

/// A numeric array for CacheKit's auto mode (`__array_v1__`); a plain vector or span is a list. Refers to the elements.
template <class T>
  requires(std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t> || std::same_as<T, float> || std::same_as<T, double>)
struct array_view {
  std::span<const T> elements;
};
template <std::ranges::contiguous_range R>
[[nodiscard]] auto array(const R& elements) {
  using element = std::ranges::range_value_t<R>;
  return array_view<element>{std::span<const element>(std::ranges::data(elements), std::ranges::size(elements))};
}

namespace detail {

template <class>
inline constexpr bool never = false;

template <class T>
concept has_holdfast_key = requires(const T& t) { holdfast_key(t); };
template <class T>
concept text_like = std::is_convertible_v<const T&, std::string_view>;
template <class T>
concept null_like = std::same_as<T, std::nullptr_t> || std::same_as<T, std::nullopt_t> || std::same_as<T, std::monostate>;
template <class T>
concept set_like = std::ranges::forward_range<const T> && requires { typename T::key_type; } && !requires { typename T::mapped_type; };
template <class T>
concept map_like = std::ranges::forward_range<const T> && requires {
  typename T::key_type;
  typename T::mapped_type;
};
template <class T>
concept hashed = requires { typename T::hasher; };
template <class T>
concept byte_range = std::ranges::contiguous_range<const T> && std::same_as<std::ranges::range_value_t<const T>, std::byte>;

template <class T, template <class...> class Of>
inline constexpr bool is_instance = false;
template <template <class...> class Of, class... A>
inline constexpr bool is_instance<Of<A...>, Of> = true;

template <class>
inline constexpr bool is_keyword = false;
template <class T>
inline constexpr bool is_keyword<keyword<T>> = true;
template <class>
inline constexpr bool is_array_view = false;
template <class T>
inline constexpr bool is_array_view<array_view<T>> = true;
template <class>
inline constexpr bool is_sys_time = false;
template <class D>
inline constexpr bool is_sys_time<std::chrono::sys_time<D>> = true;
template <class>
inline constexpr bool is_local_time = false;
template <class D>
inline constexpr bool is_local_time<std::chrono::local_time<D>> = true;

/// What a scheme lets through at compile time.
struct model_rules {
  static constexpr bool sets = true, hashed = true, enumerations = true, arrays = true, keywords = false;
};
struct failover_rules {
  static constexpr bool sets = true, hashed = false, enumerations = false, arrays = true, keywords = false;
};
struct cachekit_rules {
  static constexpr bool sets = false, hashed = true, enumerations = true, arrays = true, keywords = true;
};
struct interop_rules {
  static constexpr bool sets = true, hashed = true, enumerations = true, arrays = false, keywords = false;
};

template <class K>
map_key make_map_key(const K& k) {
  map_key result;
  constexpr bool whole = std::integral<K> && sizeof(K) <= 8 && !std::same_as<K, char> && !std::same_as<K, wchar_t> &&
                         !std::same_as<K, char8_t> && !std::same_as<K, char16_t> && !std::same_as<K, char32_t>;
  if constexpr (std::same_as<K, bool>) {
    result.type = map_key::kind::boolean;
    result.truth = k;
  } else if constexpr (whole && std::is_signed_v<K>) {
    result.type = map_key::kind::integer;
    result.integer = k;
  } else if constexpr (whole) {
    result.type = map_key::kind::unsigned_integer;
    result.unsigned_integer = k;
  } else if constexpr (std::same_as<K, float>) {
    result.type = map_key::kind::float32;
    result.single = k;
  } else if constexpr (std::same_as<K, double>) {
    result.type = map_key::kind::float64;
    result.number = k;
  } else if constexpr (text_like<K>) {
    result.type = map_key::kind::text;
    result.text = std::string_view(k);
  } else if constexpr (byte_range<K>) {
    result.type = map_key::kind::bytes;
    result.text = {reinterpret_cast<const char*>(std::ranges::data(k)), std::ranges::size(k)};
  } else {
    static_assert(never<K>, "holdfast: the keys of a map must be text, integers, floats, booleans or bytes");
  }
  return result;
}

/// Room for a map's entries: on the stack while there are few.
class slot_room {
 public:
  explicit slot_room(std::size_t count) : count_(count) {
    if (count > few_.size()) many_.resize(count);
  }
  [[nodiscard]] std::span<map_slot> slots() noexcept { return {many_.empty() ? few_.data() : many_.data(), count_}; }

 private:
  std::size_t count_;
  std::array<map_slot, 16> few_;
  std::vector<map_slot> many_;
};

template <class Rules, class T>
void write_argument(writer& w, const T& v);

template <class Rules, class Map>
void write_map(writer& w, const Map& items) {
  using item = std::ranges::range_value_t<const Map>;
  static_assert(Rules::hashed || !hashed<Map>,
                "holdfast: the order of a std::unordered_map would show in this key and differs between processes; pass a std::map");
  slot_room room(static_cast<std::size_t>(std::ranges::distance(items)));
  const auto slots = room.slots();
  std::size_t at = 0;
  for (const auto& each : items) {
    slots[at].key = make_map_key(each.first);
    slots[at].item = std::addressof(each);
    ++at;
  }
  w.begin_map(slots);
  for (const map_slot& slot : slots) {
    w.entry(slot);
    write_argument<Rules>(w, static_cast<const item*>(slot.item)->second);
  }
  w.end_map();
}

template <class Rules, class T>
void write_argument(writer& w, const T& v) {
  using std::is_same_v;
  if constexpr (has_holdfast_key<T>) {
    write_argument<Rules>(w, holdfast_key(v));
  } else if constexpr (is_same_v<T, value>) {
    write(w, v);
  } else if constexpr (null_like<T>) {
    w.null();
  } else if constexpr (is_same_v<T, bool>) {
    w.boolean(v);
  } else if constexpr (is_same_v<T, char>) {
    w.character(static_cast<unsigned char>(v));
  } else if constexpr (is_same_v<T, char32_t>) {
    w.character(v);
  } else if constexpr (is_same_v<T, wchar_t> || is_same_v<T, char8_t> || is_same_v<T, char16_t>) {
    static_assert(never<T>, "holdfast: this character type is not a whole character; pass char32_t, or text as UTF-8");
  } else if constexpr (std::integral<T>) {
    static_assert(sizeof(T) <= 8, "holdfast: an integer of more than 64 bits cannot be a key; pass key::big_integer or a decimal text");
    if constexpr (std::is_signed_v<T>) w.integer(v);
    else w.unsigned_integer(v);
  } else if constexpr (is_same_v<T, float>) {
    w.float32(v);
  } else if constexpr (is_same_v<T, double>) {
    w.float64(v);
  } else if constexpr (std::floating_point<T>) {
    static_assert(never<T>, "holdfast: long double has no portable form; pass a double or key::decimal");
  } else if constexpr (is_same_v<T, std::byte>) {
    static_assert(never<T>, "holdfast: a single std::byte is neither a number nor text; pass std::to_integer<int>(b) or a range of bytes");
  } else if constexpr (text_like<T>) {
    if constexpr (std::is_pointer_v<T>) {
      if (v == nullptr) return w.null();
    }
    w.text(std::string_view(v));
  } else if constexpr (is_instance<T, std::optional>) {
    if (v) write_argument<Rules>(w, *v);
    else w.null();
  } else if constexpr (is_instance<T, std::variant>) {
    std::visit([&w](const auto& held) { write_argument<Rules>(w, held); }, v);
  } else if constexpr (is_instance<T, std::pair> || is_instance<T, std::tuple>) {
    w.begin_list(std::tuple_size_v<T>);
    std::apply([&w](const auto&... each) { (write_argument<Rules>(w, each), ...); }, v);
    w.end_list();
  } else if constexpr (is_sys_time<T>) {
    static_assert(std::integral<typename T::rep>,
                  "holdfast: a floating-point time is not exact; use a clock with an integral representation");
    const auto seconds = std::chrono::floor<std::chrono::seconds>(v);
    const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(v - seconds);
    w.instant({seconds, static_cast<std::uint32_t>(rest.count()), {}});
  } else if constexpr (is_local_time<T>) {
    static_assert(never<T>, "holdfast: a local time is another moment in every time zone; pass a std::chrono::sys_time");
  } else if constexpr (is_instance<T, std::chrono::duration>) {
    static_assert(never<T>, "holdfast: a duration loses its unit in a key; pass its .count()");
  } else if constexpr (is_same_v<T, std::filesystem::path>) {
    w.path(v.native(), key::path::flavour::posix);
  } else if constexpr (is_same_v<T, uuid>) {
    w.uuid(v);
  } else if constexpr (is_same_v<T, decimal>) {
    w.decimal(v.text);
  } else if constexpr (is_same_v<T, big_integer>) {
    w.big_integer(v.digits);
  } else if constexpr (is_same_v<T, character>) {
    w.character(v.code_point);
  } else if constexpr (is_same_v<T, instant>) {
    w.instant(v);
  } else if constexpr (is_same_v<T, date>) {
    w.date(v);
  } else if constexpr (is_same_v<T, time_of_day>) {
    w.time_of_day(v);
  } else if constexpr (is_same_v<T, path>) {
    w.path(v.text, v.style);
  } else if constexpr (is_array_view<T>) {
    static_assert(Rules::arrays, "holdfast: interop/v1 has no numeric arrays; pass the vector itself, which is a list");
    static_assert(std::endian::native == std::endian::little, "holdfast: numeric arrays are little-endian");
    using element = std::remove_cvref_t<decltype(v.elements[0])>;
    constexpr auto type = is_same_v<element, std::int32_t>   ? array_value::element::i32
                          : is_same_v<element, std::int64_t> ? array_value::element::i64
                          : is_same_v<element, float>        ? array_value::element::f32
                                                             : array_value::element::f64;
    w.array(type, std::as_bytes(v.elements));
  } else if constexpr (is_keyword<T>) {
    static_assert(never<T>, "holdfast: keyword arguments exist only in CacheKit's auto mode, and only as arguments of the call itself");
  } else if constexpr (std::is_pointer_v<T> || is_instance<T, std::unique_ptr> || is_instance<T, std::shared_ptr>) {
    static_assert(never<T>, "holdfast: a pointer is not a key, its address changes from run to run; pass what it points to");
  } else if constexpr (std::is_enum_v<T>) {
    static_assert(Rules::enumerations,
                  "holdfast: this enumeration has no text form, and its number is not what other services print; "
                  "give it one: std::string_view holdfast_key(T)");
    write_argument<Rules>(w, static_cast<std::underlying_type_t<T>>(v));
  } else if constexpr (map_like<T>) {
    write_map<Rules>(w, v);
  } else if constexpr (set_like<T>) {
    static_assert(Rules::sets, "holdfast: CacheKit's auto mode refuses sets; pass a sorted std::vector");
    static_assert(Rules::hashed || !hashed<T>,
                  "holdfast: the order of a std::unordered_set would show in this key and differs between processes; pass a std::set");
    w.begin_set(static_cast<std::size_t>(std::ranges::distance(v)));
    for (const auto& each : v) write_argument<Rules>(w, each);
    w.end_set();
  } else if constexpr (byte_range<T>) {
    w.bytes(std::as_bytes(std::span(std::ranges::data(v), std::ranges::size(v))));
  } else if constexpr (std::ranges::forward_range<const T>) {
    w.begin_list(static_cast<std::size_t>(std::ranges::distance(v)));
    if constexpr (is_same_v<T, std::vector<bool>>) {
      for (const bool each : v) w.boolean(each);
    } else {
      for (const auto& each : v) write_argument<Rules>(w, each);
    }
    w.end_list();
  } else {
    static_assert(never<T>,
                  "holdfast: this type cannot be part of a key, it has no stable form; "
                  "give it one in its own namespace: auto holdfast_key(const T& t) { return std::tuple(t.a, t.b); }");
  }
}

/// Writes a whole call: positional arguments in order, keyword arguments wherever they stand.
template <class Rules, class... A>
void write_call(writer& w, const A&... args) {
  constexpr std::size_t keywords = (std::size_t{is_keyword<A>} + ... + 0);
  static_assert(keywords == 0 || Rules::keywords,
                "holdfast: keyword arguments exist only in CacheKit's auto mode, and only as arguments of the call itself");
  w.begin_arguments(sizeof...(A) - keywords);
  (
      [&w](const auto& each) {
        if constexpr (!is_keyword<std::remove_cvref_t<decltype(each)>>) write_argument<Rules>(w, each);
      }(args),
      ...);
  if constexpr (keywords > 0) {
    struct erased {
      const void* item;
      void (*write)(writer&, const void*);
    };
    std::array<erased, keywords> items;
    std::array<map_slot, keywords> slots;
    std::size_t at = 0;
    (
        [&](const auto& each) {
          if constexpr (is_keyword<std::remove_cvref_t<decltype(each)>>) {
            using item = std::remove_cvref_t<decltype(each.item)>;
            items[at] = {std::addressof(each.item),
                         [](writer& to, const void* p) { write_argument<Rules>(to, *static_cast<const item*>(p)); }};
            slots[at].key = make_map_key(each.name);
            slots[at].item = &items[at];
            ++at;
          }
        }(args),
        ...);
    w.begin_keywords(slots);
    for (const map_slot& slot : slots) {
      w.entry(slot);
      const auto& target = *static_cast<const erased*>(slot.item);
      target.write(w, target.item);
    }
  }
  w.end_arguments();
}

HOLDFAST_API value collect(argument_writer write);

}  // namespace detail

/// Whether `holdfast_key` or the table above covers T itself. (What T contains is checked when a key is made, with a message that says why.)
template <class T>
concept keyable = detail::has_holdfast_key<T> || detail::null_like<T> || std::same_as<T, value> ||
                  (std::is_arithmetic_v<T> && !std::same_as<T, long double> && !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
                   !std::same_as<T, char16_t> && sizeof(T) <= 8) ||
                  detail::text_like<T> || detail::is_instance<T, std::optional> || detail::is_instance<T, std::variant> ||
                  detail::is_instance<T, std::pair> || detail::is_instance<T, std::tuple> || detail::is_sys_time<T> ||
                  (std::is_enum_v<T> && !std::same_as<T, std::byte>) || std::same_as<T, std::filesystem::path> || std::same_as<T, uuid> ||
                  std::same_as<T, decimal> || std::same_as<T, big_integer> || std::same_as<T, character> || std::same_as<T, instant> ||
                  std::same_as<T, date> || std::same_as<T, time_of_day> || std::same_as<T, path> || detail::is_array_view<T> ||
                  std::ranges::forward_range<const T>;

/// The run-time value of a C++ one: what a custom key generator is given.
template <class T>
[[nodiscard]] value to_value(const T& v) {
  return detail::collect([&v](writer& w) { detail::write_argument<detail::model_rules>(w, v); });
}

}  // namespace HOLDFAST_NAMESPACE::key
