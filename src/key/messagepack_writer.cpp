#include "key/messagepack_writer.hpp"

#include <holdfast/key/small_call.hpp>

#include "base/hex.hpp"
#include "base/utf8.hpp"
#include "key/digest.hpp"
#include "key/map_order.hpp"
#include "key/messages.hpp"
#include "key/number_text.hpp"
#include "key/path_text.hpp"
#include "key/time_text.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace HOLDFAST_NAMESPACE::detail::key {

namespace {

constexpr std::size_t max_array_bytes = 100'000;
constexpr std::size_t max_total_array_bytes = 5'000'000;

constexpr char null_marker = '\xc0';
constexpr char false_marker = '\xc2';
constexpr char true_marker = '\xc3';

std::string_view as_text(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

// ---- bytes

void messagepack_writer::put_big_endian(unsigned char marker, std::uint64_t v, std::size_t width) {
  char bytes[9];  // NOLINT(*-avoid-c-arrays)
  put({bytes, holdfast::key::detail::write_big_endian(bytes, marker, v, width)});
}

void messagepack_writer::put_unsigned(std::uint64_t v) {
  constexpr std::uint64_t first_of_two_bytes = 0x80;
  if (v < first_of_two_bytes) return put(static_cast<char>(v));
  char bytes[9];  // NOLINT(*-avoid-c-arrays)
  put({bytes, holdfast::key::detail::write_unsigned(bytes, v)});
}

void messagepack_writer::put_negative(std::int64_t v) {
  char bytes[9];  // NOLINT(*-avoid-c-arrays)
  put({bytes, holdfast::key::detail::write_negative(bytes, v)});
}

void messagepack_writer::put_float(double v) {
  put_big_endian(0xcb, std::bit_cast<std::uint64_t>(v), 8);
}

void messagepack_writer::put_long_header(std::size_t count, unsigned char marker16,
                                         unsigned char marker32) {
  if (count <= 0xFFFF) put_big_endian(marker16, count, 2);
  else if (count <= 0xFFFFFFFF) put_big_endian(marker32, count, 4);
  else fail(errc::too_large, "more than 2^32 - 1 elements");
}

void messagepack_writer::put_text(std::string_view v) {
  if (v.size() < 32) put(static_cast<char>(0xa0 | v.size()));
  else if (v.size() <= 0xFF) put_big_endian(0xd9, v.size(), 1);
  else put_long_header(v.size(), 0xda, 0xdb);
  put(v);
}

void messagepack_writer::put_checked_text(std::string_view v) {
  if (!is_utf8(v)) fail(errc::ill_formed_text, ill_formed_text_message);
  put_text(v);
}

void messagepack_writer::put_bytes(std::string_view v) {
  if (v.size() <= 0xFF) put_big_endian(0xc4, v.size(), 1);
  else put_long_header(v.size(), 0xc5, 0xc6);
  put(v);
}

void messagepack_writer::begin_value(std::size_t inner_levels) {
  count_value();
  if (depth() + inner_levels > max_levels_) fail(errc::too_deep, too_deep_message(max_levels_));
  if (buffering_ && current_frame() == frame_kind::set)
    sets_->open.back().element_offsets.push_back(sets_->bytes.size());
}

std::string_view messagepack_writer::format_name() const noexcept {
  switch (rules_) {
    case profile::cachekit_auto:
      return "a CacheKit auto-mode key";
    case profile::interop_args:
      return "an interop key";
    case profile::interop_value:
      break;
  }
  return "an interop value";
}

// ---- the call

void messagepack_writer::begin_arguments(std::size_t count) {
  if (rules_ == profile::cachekit_auto) put_array_header(2);
  put_array_header(count);
  push(frame_kind::arguments);
}

void messagepack_writer::begin_keywords(std::span<map_slot> slots) {
  pop();
  push(frame_kind::keywords);
  if (rules_ != profile::cachekit_auto) {
    set_entry_key(slots.front().key);
    fail(errc::invalid_argument,
         "an interop key has no keyword arguments; pass them at their declared position");
  }
  sort_entries(*this, slots);
  put_map_header(slots.size());
}

void messagepack_writer::end_arguments() {
  // The call had no keyword arguments: write an empty map.
  if (rules_ == profile::cachekit_auto && current_frame() == frame_kind::arguments)
    put_map_header(0);
  pop();
}

// ---- scalars

void messagepack_writer::null() {
  begin_value();
  put(null_marker);
}

void messagepack_writer::boolean(bool v) {
  begin_value();
  put(v ? true_marker : false_marker);
}

void messagepack_writer::integer(std::int64_t v) {
  begin_value();
  if (v < 0) put_negative(v);
  else put_unsigned(static_cast<std::uint64_t>(v));
}

void messagepack_writer::unsigned_integer(std::uint64_t v) {
  begin_value();
  put_unsigned(v);
}

void messagepack_writer::float32(float v) { float64(static_cast<double>(v)); }

void messagepack_writer::float64(double v) {
  begin_value();
  switch (rules_) {
    case profile::cachekit_auto:
      put_float(v == 0 ? 0.0 : v);  // -0.0 becomes 0.0; NaN keeps its bits
      break;
    case profile::interop_args:
      put_interop_number(v);
      break;
    case profile::interop_value:
      if (!std::isfinite(v))
        fail(errc::not_finite, "NaN and infinities are not interop values; pass null or a text");
      put_float(v);
      break;
  }
}

void messagepack_writer::put_interop_number(double v) {
  if (!std::isfinite(v))
    fail(errc::not_finite,
         "NaN and infinities cannot be part of an interop key; pass null or a text");
  // 2.0 and 2 give the same key, because some languages do not distinguish them.
  if (v == std::trunc(v)) {
    if (v >= 0 && v < 18446744073709551616.0) return put_unsigned(static_cast<std::uint64_t>(v));
    if (v < 0 && v >= -9223372036854775808.0) return put_negative(static_cast<std::int64_t>(v));
  }
  put_float(v);
}

void messagepack_writer::character(char32_t v) {
  char encoded[4];  // NOLINT(*-avoid-c-arrays)
  const auto length = encode_utf8(v, encoded);
  begin_value();
  if (length == 0) fail(errc::ill_formed_text, not_a_character_message);
  put_text({encoded, length});
}

void messagepack_writer::text(std::string_view v) {
  begin_value();
  put_checked_text(v);
}

void messagepack_writer::bytes(std::span<const std::byte> v) {
  begin_value();
  put_bytes(as_text(v));
}

void messagepack_writer::uuid(const key::uuid& v) {
  begin_value();
  if (rules_ == profile::interop_value) unsupported("uuid");
  put_text(v.to_string());
}

void messagepack_writer::decimal(std::string_view v) {
  begin_value();
  if (rules_ == profile::interop_value) unsupported("decimal");
  const auto canonical = decimal_text(v, decimal_rules::python);
  if (!canonical) fail(errc::invalid_argument, not_a_decimal_message);
  put_text(*canonical);
}

void messagepack_writer::big_integer(std::string_view) {
  begin_value();
  fail(errc::out_of_range, big_integer_message);
}

void messagepack_writer::instant(const key::instant& v) {
  begin_value();
  const auto iso = iso_text(v);
  if (!iso) fail(errc::out_of_range, "the time is outside the years 1 to 9999");
  if (rules_ == profile::interop_args) {
    // All SDKs round to whole microseconds first and then divide.
    return put_interop_number(static_cast<double>(microseconds_since_epoch(v)) / 1e6);
  }
  if (rules_ == profile::interop_value) put_temporal("__datetime__", *iso);
  else put_text(*iso);
}

void messagepack_writer::date(const key::date& v) {
  begin_value();
  if (rules_ != profile::interop_value) unsupported("date");
  const auto iso = iso_text(v);
  if (!iso) fail(errc::out_of_range, "the date is outside the years 1 to 9999");
  put_temporal("__date__", *iso);
}

void messagepack_writer::time_of_day(const key::time_of_day& v) {
  begin_value();
  if (rules_ != profile::interop_value) unsupported("time of day");
  put_temporal("__time__", iso_text(v));
}

void messagepack_writer::put_temporal(std::string_view marker, std::string_view iso) {
  put_map_header(2);
  put_text(marker);
  put(true_marker);
  put_text("value");
  put_text(iso);
}

void messagepack_writer::path(std::string_view v, key::path::flavour style) {
  begin_value();
  if (rules_ == profile::interop_value) unsupported("path");
  put_checked_text(posix_text(v, style));
}

void messagepack_writer::array(array_value::element type,
                               std::span<const std::byte> little_endian) {
  begin_value(2);  // an array is written as a list that contains a list
  if (rules_ != profile::cachekit_auto) unsupported("numeric array");
  if (little_endian.size() > max_array_bytes) {
    fail(errc::too_large, "the array has " + std::to_string(little_endian.size()) +
                              " bytes; at most " + std::to_string(max_array_bytes) +
                              " can be part of a key, so pass a hash or a name of it instead");
  }
  array_bytes_ += little_endian.size();
  if (array_bytes_ > max_total_array_bytes) {
    fail(errc::too_large, "the arrays of this call have more than " +
                              std::to_string(max_total_array_bytes) +
                              " bytes in total; pass hashes or names of them instead");
  }
  static constexpr std::array<std::string_view, 4> names{"i32", "i64", "f32", "f64"};
  const auto index = static_cast<std::size_t>(type);
  const std::size_t width = index % 2 == 0 ? 4 : 8;
  char hex[64];  // NOLINT(*-avoid-c-arrays)
  to_hex(blake2b_256(as_text(little_endian)).data(), 32, hex);
  put_array_header(4);
  put_text("__array_v1__");
  put_array_header(1);
  put_unsigned(little_endian.size() / width);
  put_text(names[index]);
  put_text({hex, sizeof hex});
}

// ---- containers

void messagepack_writer::begin_list(std::size_t count) {
  begin_value();
  put_array_header(count);
  push(frame_kind::list);
}
void messagepack_writer::end_list() { pop(); }

void messagepack_writer::begin_set(std::size_t) {
  begin_value();
  if (rules_ == profile::cachekit_auto) {
    fail(errc::unsupported_type,
         "a set cannot be part of a CacheKit auto-mode key, its order is not defined; pass a "
         "sorted list");
  }
  if (rules_ == profile::interop_value) unsupported("set");
  if (!sets_) sets_ = std::make_unique<buffered_sets>();
  sets_->open.push_back({sets_->bytes.size(), {}});
  buffering_ = true;
  push(frame_kind::set);
}

void messagepack_writer::end_set() {
  pop();
  const open_set set = std::move(sets_->open.back());
  sets_->open.pop_back();
  buffering_ = !sets_->open.empty();

  std::string& bytes = sets_->bytes;
  std::vector<std::string_view> elements;
  elements.reserve(set.element_offsets.size());
  const std::string_view buffered(bytes);
  for (std::size_t i = 0; i < set.element_offsets.size(); ++i) {
    const auto begin = set.element_offsets[i];
    const auto end =
        i + 1 < set.element_offsets.size() ? set.element_offsets[i + 1] : buffered.size();
    elements.push_back(buffered.substr(begin, end - begin));
  }
  // Elements with the same encoding are equal in every language.
  std::sort(elements.begin(), elements.end());
  elements.erase(std::unique(elements.begin(), elements.end()), elements.end());

  std::string sorted;
  sorted.reserve(buffered.size() - set.begin);
  for (const auto element : elements) sorted += element;
  bytes.resize(set.begin);
  put_array_header(elements.size());
  put(sorted);
}

void messagepack_writer::begin_map(std::span<map_slot> slots) {
  begin_value();
  if (rules_ != profile::cachekit_auto) {
    for (const map_slot& slot : slots) {
      if (slot.key.type != map_key::kind::text) {
        fail(errc::unsupported_type, "the keys of a map in " + std::string(format_name()) +
                                         " must be text, and " + describe(slot.key) + " is not");
      }
    }
  }
  sort_entries(*this, slots);
  put_map_header(slots.size());
  push(frame_kind::map);
}

void messagepack_writer::entry(const map_slot& slot) {
  set_entry_key(slot.key);
  put_key(slot.key);
}

void messagepack_writer::put_key(const map_key& k) {
  switch (k.type) {
    case map_key::kind::null:
      return put(null_marker);
    case map_key::kind::boolean:
      return put(k.truth ? true_marker : false_marker);
    case map_key::kind::integer:
      return k.integer < 0 ? put_negative(k.integer)
                           : put_unsigned(static_cast<std::uint64_t>(k.integer));
    case map_key::kind::unsigned_integer:
      return put_unsigned(k.unsigned_integer);
    case map_key::kind::float32:
      return put_float(static_cast<double>(k.single));
    case map_key::kind::float64:
      return put_float(k.number);
    case map_key::kind::text:
      return put_checked_text(k.text);
    case map_key::kind::bytes:
      return put_bytes(k.text);
    case map_key::kind::other:
      break;
  }
  if (k.type_name == "big integer") fail(errc::out_of_range, big_integer_message);
  unsupported(std::string(k.type_name) + " as a map key");
}

void messagepack_writer::end_map() { pop(); }

// ---- types that only Java has

void messagepack_writer::object(const key::object& v) {
  begin_value();
  unsupported(v.class_name.empty() ? "object" : v.class_name);
}
void messagepack_writer::object_identity(const key::object_identity& v) {
  begin_value();
  unsupported(v.class_name.empty() ? "object" : v.class_name);
}
void messagepack_writer::begin_optional(bool) {
  begin_value();
  unsupported("Optional");
}
void messagepack_writer::end_optional() {}

bool messagepack_writer::enumerator_by_text(const key::enumeration& v) {
  if (rules_ == profile::interop_value) {
    begin_value();
    unsupported("enum");
  }
  // CacheKit's reference treats an enumerator that is also a float as a float and cannot encode it,
  // unless it is zero.
  const auto* number = v.underlying->if_is<double>();
  if (rules_ == profile::cachekit_auto && v.float_mixin && (number == nullptr || *number != 0)) {
    begin_value();
    unsupported("enum of floats");
  }
  return false;
}

}  // namespace HOLDFAST_NAMESPACE::detail::key
