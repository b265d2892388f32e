#pragma once

/// \file
/// Implementation of keyable.hpp: writes C++ arguments to a writer. All decisions are made at
/// compile time, by type.

#include <holdfast/key/keyable.hpp>  // NOLINT(misc-header-include-cycle)
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

namespace detail {

// ---- groups of types

template <class>
inline constexpr bool never = false;

template <class T>
concept has_holdfast_key = requires(const T& t) { holdfast_key(t); };
template <class T>
concept text_like = std::is_convertible_v<const T&, std::string_view>;
template <class T>
concept null_like = std::same_as<T, std::nullptr_t> || std::same_as<T, std::nullopt_t> ||
                    std::same_as<T, std::monostate>;
template <class T>
concept set_like = std::ranges::forward_range<const T> && requires { typename T::key_type; } &&
                   !requires { typename T::mapped_type; };
template <class T>
concept map_like = std::ranges::forward_range<const T> && requires {
  typename T::key_type;
  typename T::mapped_type;
};
template <class T>
concept hashed = requires { typename T::hasher; };
template <class T>
concept byte_range = std::ranges::contiguous_range<const T> &&
                     std::same_as<std::ranges::range_value_t<const T>, std::byte>;

template <class T, class... Types>
concept one_of = (std::same_as<T, Types> || ...);

/// Integers, but neither booleans nor characters.
template <class T>
inline constexpr bool is_integer = std::integral<T> && sizeof(T) <= 8 &&
                                   !one_of<T, bool, char, wchar_t, char8_t, char16_t, char32_t>;

/// The structs of value.hpp that hold no other values.
template <class T>
concept model_scalar =
    one_of<T, uuid, decimal, big_integer, character, instant, date, time_of_day, path>;

template <class T, template <class...> class Of>
inline constexpr bool is_instance = false;
template <template <class...> class Of, class... A>
inline constexpr bool is_instance<Of<A...>, Of> = true;

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

template <class T>
struct is_keyable {
  static constexpr bool value =
      has_holdfast_key<T> || null_like<T> || std::same_as<T, key::value> ||
      (std::is_arithmetic_v<T> && sizeof(T) <= 8 &&
       !one_of<T, wchar_t, char8_t, char16_t, long double>) ||
      text_like<T> || is_instance<T, std::optional> || is_instance<T, std::variant> ||
      is_instance<T, std::pair> || is_instance<T, std::tuple> || is_sys_time<T> ||
      (std::is_enum_v<T> && !std::same_as<T, std::byte>) ||
      std::same_as<T, std::filesystem::path> || model_scalar<T> || is_array_view<T> ||
      std::ranges::forward_range<const T>;
};

// ---- rules of the schemes

/// The rules of to_value, which accepts everything that has a run-time value.
struct model_rules {
  static constexpr bool sets = true, hashed = true, enumerations = true, arrays = true,
                        keywords = false;
};
struct failover_rules {
  static constexpr bool sets = true, hashed = false, enumerations = false, arrays = true,
                        keywords = false;
};
struct cachekit_rules {
  static constexpr bool sets = false, hashed = true, enumerations = true, arrays = true,
                        keywords = true;
};
struct interop_rules {
  static constexpr bool sets = true, hashed = true, enumerations = true, arrays = false,
                        keywords = false;
};

// ---- arguments

template <class Rules, class T>
void write_argument(writer& w, const T& v);

template <class T>
void write_number(writer& w, const T& v) {
  if constexpr (std::same_as<T, bool>) {
    w.boolean(v);
  } else if constexpr (std::same_as<T, char>) {
    w.character(static_cast<unsigned char>(v));
  } else if constexpr (std::same_as<T, char32_t>) {
    w.character(v);
  } else if constexpr (one_of<T, wchar_t, char8_t, char16_t>) {
    static_assert(
        never<T>,
        "holdfast: this character type is not a whole character; pass char32_t, or text as UTF-8");
  } else if constexpr (std::integral<T>) {
    static_assert(sizeof(T) <= 8,
                  "holdfast: an integer of more than 64 bits cannot be a key; pass "
                  "key::big_integer or a decimal text");
    if constexpr (std::is_signed_v<T>) w.integer(v);
    else w.unsigned_integer(v);
  } else if constexpr (std::same_as<T, float>) {
    w.float32(v);
  } else {
    static_assert(std::same_as<T, double>,
                  "holdfast: long double has no portable form; pass a double or key::decimal");
    w.float64(v);
  }
}

template <class T>
void write_text(writer& w, const T& v) {
  if constexpr (std::is_pointer_v<T>) {
    if (v == nullptr) return w.null();
  }
  w.text(std::string_view(v));
}

template <class T>
void write_instant(writer& w, const T& v) {
  static_assert(std::integral<typename T::rep>,
                "holdfast: a floating-point time is not exact; use a clock with an integral "
                "representation");
  const auto seconds = std::chrono::floor<std::chrono::seconds>(v);
  const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(v - seconds);
  w.instant({seconds, static_cast<std::uint32_t>(rest.count()), {}});
}

inline void write_scalar(writer& w, const uuid& v) { w.uuid(v); }
inline void write_scalar(writer& w, const decimal& v) { w.decimal(v.text); }
inline void write_scalar(writer& w, const big_integer& v) { w.big_integer(v.digits); }
inline void write_scalar(writer& w, const character& v) { w.character(v.code_point); }
inline void write_scalar(writer& w, const instant& v) { w.instant(v); }
inline void write_scalar(writer& w, const date& v) { w.date(v); }
inline void write_scalar(writer& w, const time_of_day& v) { w.time_of_day(v); }
inline void write_scalar(writer& w, const path& v) { w.path(v.text, v.style); }

template <class Rules, class T>
void write_array(writer& w, const array_view<T>& v) {
  static_assert(
      Rules::arrays,
      "holdfast: interop/v1 has no numeric arrays; pass the vector itself, which is a list");
  static_assert(std::endian::native == std::endian::little,
                "holdfast: numeric arrays are little-endian");
  constexpr auto type = std::same_as<T, std::int32_t>   ? array_value::element::i32
                        : std::same_as<T, std::int64_t> ? array_value::element::i64
                        : std::same_as<T, float>        ? array_value::element::f32
                                                        : array_value::element::f64;
  w.array(type, std::as_bytes(v.elements));
}

template <class K>
map_key make_map_key(const K& k) {
  map_key result;
  if constexpr (std::same_as<K, bool>) {
    result.type = map_key::kind::boolean;
    result.truth = k;
  } else if constexpr (is_integer<K> && std::is_signed_v<K>) {
    result.type = map_key::kind::integer;
    result.integer = k;
  } else if constexpr (is_integer<K>) {
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
    static_assert(never<K>,
                  "holdfast: the keys of a map must be text, integers, floats, booleans or bytes");
  }
  return result;
}

/// The slots of a map: on the stack for up to 16 entries, on the heap for more.
class slot_buffer {
 public:
  explicit slot_buffer(std::size_t count) : count_(count) {
    if (count > inline_slots_.size()) heap_slots_.resize(count);
  }
  [[nodiscard]] std::span<map_slot> slots() noexcept {
    return {heap_slots_.empty() ? inline_slots_.data() : heap_slots_.data(), count_};
  }

 private:
  std::size_t count_;
  std::array<map_slot, 16> inline_slots_;
  std::vector<map_slot> heap_slots_;
};

template <class Rules, class Map>
void write_map(writer& w, const Map& entries) {
  using entry_type = std::ranges::range_value_t<const Map>;
  static_assert(Rules::hashed || !hashed<Map>,
                "holdfast: the order of a std::unordered_map would show in this key and differs "
                "between processes; pass a std::map");
  slot_buffer buffer(static_cast<std::size_t>(std::ranges::distance(entries)));
  const auto slots = buffer.slots();
  std::size_t count = 0;
  for (const auto& entry : entries) {
    slots[count].key = make_map_key(entry.first);
    slots[count].item = std::addressof(entry);
    ++count;
  }
  w.begin_map(slots);
  for (const map_slot& slot : slots) {
    w.entry(slot);
    write_argument<Rules>(w, static_cast<const entry_type*>(slot.item)->second);
  }
  w.end_map();
}

template <class Rules, class Set>
void write_set(writer& w, const Set& elements) {
  static_assert(Rules::sets,
                "holdfast: CacheKit's auto mode refuses sets; pass a sorted std::vector");
  static_assert(Rules::hashed || !hashed<Set>,
                "holdfast: the order of a std::unordered_set would show in this key and differs "
                "between processes; pass a std::set");
  w.begin_set(static_cast<std::size_t>(std::ranges::distance(elements)));
  for (const auto& element : elements) write_argument<Rules>(w, element);
  w.end_set();
}

template <class Rules, class Range>
void write_range(writer& w, const Range& elements) {
  if constexpr (map_like<Range>) {
    write_map<Rules>(w, elements);
  } else if constexpr (set_like<Range>) {
    write_set<Rules>(w, elements);
  } else if constexpr (byte_range<Range>) {
    w.bytes(std::as_bytes(std::span(std::ranges::data(elements), std::ranges::size(elements))));
  } else {
    w.begin_list(static_cast<std::size_t>(std::ranges::distance(elements)));
    if constexpr (std::same_as<Range, std::vector<bool>>) {
      for (const bool element : elements) w.boolean(element);
    } else {
      for (const auto& element : elements) write_argument<Rules>(w, element);
    }
    w.end_list();
  }
}

/// Does not compile; the message says what to pass instead.
template <class T>
constexpr void refuse() {
  if constexpr (std::same_as<T, std::byte>) {
    static_assert(never<T>,
                  "holdfast: a single std::byte is neither a number nor text; pass "
                  "std::to_integer<int>(b) or a range of bytes");
  } else if constexpr (is_local_time<T>) {
    static_assert(never<T>,
                  "holdfast: a local time is another moment in every time zone; pass a "
                  "std::chrono::sys_time");
  } else if constexpr (is_instance<T, std::chrono::duration>) {
    static_assert(never<T>, "holdfast: a duration loses its unit in a key; pass its .count()");
  } else if constexpr (is_instance<T, keyword>) {
    static_assert(never<T>,
                  "holdfast: keyword arguments exist only in CacheKit's auto mode, and only as "
                  "arguments of the call itself");
  } else if constexpr (std::is_pointer_v<T> || is_instance<T, std::unique_ptr> ||
                       is_instance<T, std::shared_ptr>) {
    static_assert(never<T>,
                  "holdfast: a pointer is not a key, its address changes from run to run; pass "
                  "what it points to");
  } else {
    static_assert(never<T>,
                  "holdfast: this type cannot be part of a key, it has no stable form; "
                  "give it one in its own namespace: auto holdfast_key(const T& t) { return "
                  "std::tuple(t.a, t.b); }");
  }
}

/// Writes one argument. The first group that T belongs to decides.
template <class Rules, class T>
void write_argument(writer& w, const T& v) {
  if constexpr (has_holdfast_key<T>) {
    write_argument<Rules>(w, holdfast_key(v));
  } else if constexpr (std::same_as<T, value>) {
    write(w, v);
  } else if constexpr (null_like<T>) {
    w.null();
  } else if constexpr (std::is_arithmetic_v<T>) {
    write_number(w, v);
  } else if constexpr (text_like<T>) {
    write_text(w, v);
  } else if constexpr (is_instance<T, std::optional>) {
    if (v) write_argument<Rules>(w, *v);
    else w.null();
  } else if constexpr (is_instance<T, std::variant>) {
    std::visit([&w](const auto& held) { write_argument<Rules>(w, held); }, v);
  } else if constexpr (is_instance<T, std::pair> || is_instance<T, std::tuple>) {
    w.begin_list(std::tuple_size_v<T>);
    std::apply([&w](const auto&... elements) { (write_argument<Rules>(w, elements), ...); }, v);
    w.end_list();
  } else if constexpr (is_sys_time<T>) {
    write_instant(w, v);
  } else if constexpr (std::same_as<T, std::filesystem::path>) {
    w.path(v.native(), key::path::flavour::posix);
  } else if constexpr (model_scalar<T>) {
    write_scalar(w, v);
  } else if constexpr (is_array_view<T>) {
    write_array<Rules>(w, v);
  } else if constexpr (std::is_enum_v<T> && !std::same_as<T, std::byte>) {
    static_assert(Rules::enumerations,
                  "holdfast: this enumeration has no text form, and its number is not what other "
                  "services print; give it one: std::string_view holdfast_key(T)");
    write_argument<Rules>(w, static_cast<std::underlying_type_t<T>>(v));
  } else if constexpr (std::ranges::forward_range<const T>) {
    write_range<Rules>(w, v);
  } else {
    refuse<T>();
  }
}

/// Writes a call: the positional arguments in order, then the keyword arguments.
template <class Rules, class... A>
void write_call(writer& w, const A&... args) {
  constexpr std::size_t keywords = (std::size_t{is_instance<A, keyword>} + ... + 0);
  static_assert(keywords == 0 || Rules::keywords,
                "holdfast: keyword arguments exist only in CacheKit's auto mode, and only as "
                "arguments of the call itself");
  w.begin_arguments(sizeof...(A) - keywords);
  (
      [&w]<class T>(const T& arg) {
        if constexpr (!is_instance<T, keyword>) write_argument<Rules>(w, arg);
      }(args),
      ...);
  if constexpr (keywords > 0) {
    struct keyword_item {
      const void* item;
      void (*write)(writer&, const void*);
    };
    std::array<keyword_item, keywords> items;
    std::array<map_slot, keywords> slots;
    std::size_t count = 0;
    (
        [&]<class T>(const T& arg) {
          if constexpr (is_instance<T, keyword>) {
            using item_type = std::remove_cvref_t<decltype(arg.item)>;
            items[count] = {std::addressof(arg.item), [](writer& out, const void* item) {
                              write_argument<Rules>(out, *static_cast<const item_type*>(item));
                            }};
            slots[count].key = make_map_key(arg.name);
            slots[count].item = &items[count];
            ++count;
          }
        }(args),
        ...);
    w.begin_keywords(slots);
    for (const map_slot& slot : slots) {
      w.entry(slot);
      const auto& item = *static_cast<const keyword_item*>(slot.item);
      item.write(w, item.item);
    }
  }
  w.end_arguments();
}

/// Runs `write` with a writer that builds a run-time value.
HOLDFAST_API value collect(argument_writer write);

}  // namespace detail

template <class T>
value to_value(const T& v) {
  return detail::collect([&v](writer& w) { detail::write_argument<detail::model_rules>(w, v); });
}

}  // namespace HOLDFAST_NAMESPACE::key
