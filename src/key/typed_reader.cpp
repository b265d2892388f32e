#include "key/typed_reader.hpp"

#include "base/hex.hpp"
#include "base/utf8.hpp"
#include "key/json_string.hpp"
#include "key/messages.hpp"
#include "key/number_text.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

namespace HOLDFAST_NAMESPACE::detail::key {

using simdjson::dom::element;

error json_error(simdjson::error_code code, std::string path) {
  if (code == simdjson::DEPTH_ERROR)
    return {errc::too_deep, too_deep_message(max_height), {.path = std::move(path)}};
  if (code == simdjson::UTF8_ERROR)
    return {errc::ill_formed_text, "the JSON is not well-formed UTF-8", {.path = std::move(path)}};
  std::string_view reason = simdjson::error_message(code);
  reason = reason.substr(0, reason.find(". "));  // the first sentence
  return {errc::malformed, "not JSON: " + std::string(reason), {.path = std::move(path)}};
}

namespace {

/// A type name for a message: at most 60 code points.
std::string shortened(std::string_view name) {
  constexpr std::size_t max_code_points = 60;
  const auto size = prefix_size(name, max_code_points);
  return std::string(name.substr(0, size)) + (size < name.size() ? "..." : "");
}

/// Converts the digits that integer_text returns.
value integer_value(std::string digits) {
  std::int64_t as_signed = 0;
  std::uint64_t as_unsigned = 0;
  const auto* end = digits.data() + digits.size();
  if (std::from_chars(digits.data(), end, as_unsigned).ec == std::errc{} && digits.front() != '-')
    return as_unsigned;
  if (std::from_chars(digits.data(), end, as_signed).ec == std::errc{}) return as_signed;
  return big_integer{std::move(digits)};
}

}  // namespace

value typed_reader::read(element json, std::string_view root) {
  root_ = root;
  stack_.clear();
  auto result = begin(json);
  while (!stack_.empty()) {
    container& open = stack_.back();
    if (result) {
      auto& target = open.needs_key() ? open.keys : open.items;
      target.push_back(std::move(*result));
      result.reset();
    }
    if (open.complete()) {
      result = finish(open);
      stack_.pop_back();
    } else {
      result = begin(next_item(open));
    }
  }
  if (!result) fail(errc::internal, "a container was opened and not completed");
  return std::move(*result);
}

bool typed_reader::container::needs_key() const noexcept {
  return type == kind::map && keys.size() == items.size();
}

bool typed_reader::container::complete() const noexcept { return items.size() == count; }

element typed_reader::next_item(container& open) const {
  if (open.type == kind::optional || open.type == kind::enumeration) return open.only;
  if (open.type != kind::map) {
    const element item = *open.next;
    ++open.next;
    return item;
  }
  simdjson::dom::array pair;
  const element entry = *open.next;
  if (entry.get(pair) != simdjson::SUCCESS || pair.size() != 2)
    fail(errc::invalid_argument, "an entry of a map must be [key, value]");
  if (open.needs_key()) return pair.at(0);
  ++open.next;
  return pair.at(1);
}

value typed_reader::finish(container& complete) {
  switch (complete.type) {
    case kind::list:
      return list{std::move(complete.items)};
    case kind::set:
      return set{std::move(complete.items)};
    case kind::optional:  // Java has no Optional of null
      if (complete.items.front().is_null()) return boxed_optional{};
      return boxed_optional{std::make_shared<const value>(std::move(complete.items.front()))};
    case kind::enumeration:
      complete.enumerator.underlying =
          std::make_shared<const value>(std::move(complete.items.front()));
      return std::move(complete.enumerator);
    case kind::map:
      break;
  }
  map result;
  result.items.reserve(complete.items.size());
  for (std::size_t i = 0; i < complete.items.size(); ++i)
    result.items.emplace_back(std::move(complete.keys[i]), std::move(complete.items[i]));
  return result;
}

namespace {

/// A map's key in a path. Keys that are neither text nor integers are shown as their index.
std::string key_in_path(const value& key, std::size_t index) {
  if (const auto* text = key.if_is<std::string>()) return quote(*text);
  if (const auto* u = key.if_is<std::uint64_t>()) return std::to_string(*u);
  if (const auto* i = key.if_is<std::int64_t>()) return std::to_string(*i);
  return std::to_string(index);
}

}  // namespace

std::string typed_reader::path_to_value() const {
  // Of a very deep path only the inner levels are shown.
  constexpr std::size_t max_levels = 48;
  const bool cut = stack_.size() > max_levels;
  std::string text = cut ? "..." : std::string(root_);
  for (std::size_t i = cut ? stack_.size() - max_levels : 0; i < stack_.size(); ++i) {
    const container& step = stack_[i];
    const auto index = "[" + std::to_string(step.items.size()) + "]";
    switch (step.type) {
      case kind::list:
      case kind::set:
        text += index;
        break;
      case kind::optional:
      case kind::enumeration:
        text += ".value";
        break;
      case kind::map:
        text += step.needs_key()
                    ? index
                    : ".items[" + key_in_path(step.keys.back(), step.items.size()) + "]";
        break;
    }
  }
  return text;
}

typed_reader::scalar_or_container typed_reader::begin(element json) {
  if (stack_.size() >= max_height) fail(errc::too_deep, too_deep_message(max_height));
  simdjson::dom::object object;
  if (json.get(object) != simdjson::SUCCESS)
    fail(errc::invalid_argument, R"(expected a typed value like {"t":"int","v":"42"})");
  std::string_view type;
  if (object["t"].get(type) != simdjson::SUCCESS)
    fail(errc::invalid_argument, "a typed value needs a text \"t\" that names its type");
  const form* const f = find_form(type);
  if (f == nullptr || (f->schemes & bit(scheme_)) == 0) unsupported(type);
  return (this->*f->read)(object);
}

void typed_reader::fail(errc code, const std::string& message) const {
  throw error(code, message, {.path = path_to_value()});
}

void typed_reader::unsupported(std::string_view type) const {
  fail(errc::unsupported_type, "a value of type '" + shortened(type) +
                                   "' cannot be part of a key; pass its text or its parts instead");
}

// ---- members of the JSON object

std::string_view typed_reader::text_of(const object_type& o, const char* name) const {
  std::string_view text;
  if (o[name].get(text) != simdjson::SUCCESS)
    fail(errc::invalid_argument, std::string("expected a text \"") + name + "\"");
  return text;
}

simdjson::dom::array typed_reader::array_of(const object_type& o, const char* name) const {
  simdjson::dom::array items;
  if (o[name].get(items) != simdjson::SUCCESS)
    fail(errc::invalid_argument, std::string("expected an array \"") + name + "\"");
  return items;
}

element typed_reader::member_of(const object_type& o, const char* name) const {
  element member;
  if (o[name].get(member) != simdjson::SUCCESS)
    fail(errc::invalid_argument, std::string("\"") + name + "\" is missing");
  return member;
}

std::string typed_reader::hex_of(const object_type& o, const char* name) const {
  const auto hex = text_of(o, name);
  std::string bytes(hex.size() / 2, '\0');
  if (!from_hex(hex, reinterpret_cast<unsigned char*>(bytes.data())))
    fail(errc::invalid_argument,
         std::string("\"") + name + "\" is not an even number of hexadecimal digits");
  return bytes;
}

byte_string typed_reader::bytes_of(const object_type& o, const char* name) const {
  const auto text = hex_of(o, name);
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

template <class Bits>
Bits typed_reader::bits_of(const object_type& o) const {
  const char* const name = o["bits"].error() == simdjson::SUCCESS ? "bits" : "v";
  auto text = text_of(o, name);
  if (text.starts_with("0x")) text.remove_prefix(2);
  Bits bits = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
  if (failed != std::errc{} || end != text.data() + text.size() ||
      text.size() != sizeof(Bits) * 2) {
    fail(errc::invalid_argument, std::string("\"") + name + "\" must be 0x and " +
                                     std::to_string(sizeof(Bits) * 2) + " hexadecimal digits");
  }
  return bits;
}

// ---- scalars

typed_reader::scalar_or_container typed_reader::read_null(const object_type&) { return value(); }

typed_reader::scalar_or_container typed_reader::read_bool(const object_type& o) {
  bool v = false;
  if (o["v"].get(v) != simdjson::SUCCESS)
    fail(errc::invalid_argument, "expected \"v\" to be true or false");
  return v;
}

typed_reader::scalar_or_container typed_reader::read_int(const object_type& o) {
  const element v = member_of(o, "v");
  std::int64_t as_signed = 0;
  std::uint64_t as_unsigned = 0;
  if (v.get(as_signed) == simdjson::SUCCESS) return as_signed;
  if (v.get(as_unsigned) == simdjson::SUCCESS) return as_unsigned;
  std::string_view text;
  if (v.get(text) == simdjson::SUCCESS) {
    const auto* begin = text.data();
    const auto* end = begin + text.size();
    if (const auto r = std::from_chars(begin, end, as_signed); r.ec == std::errc{} && r.ptr == end)
      return as_signed;
    if (const auto r = std::from_chars(begin, end, as_unsigned);
        r.ec == std::errc{} && r.ptr == end)
      return as_unsigned;
    if (auto digits = integer_text(text)) return integer_value(*std::move(digits));
  }
  fail(errc::invalid_argument, "expected \"v\" to be an integer in decimal digits");
}

typed_reader::scalar_or_container typed_reader::read_f64(const object_type& o) {
  return std::bit_cast<double>(bits_of<std::uint64_t>(o));
}

typed_reader::scalar_or_container typed_reader::read_f32(const object_type& o) {
  return std::bit_cast<float>(bits_of<std::uint32_t>(o));
}

typed_reader::scalar_or_container typed_reader::read_str(const object_type& o) {
  // JSON cannot contain ill-formed text. Tests pass it as bytes, to see it refused.
  if (o["wtf8"].error() == simdjson::SUCCESS) {
    auto text = hex_of(o, "wtf8");
    if (!is_utf8(text)) fail(errc::ill_formed_text, ill_formed_text_message);
    return value(std::move(text));
  }
  return text_of(o, "v");
}

typed_reader::scalar_or_container typed_reader::read_char(const object_type& o) {
  const auto text = text_of(o, "v");
  if (count_code_points(text) != 1)
    fail(errc::invalid_argument, "expected \"v\" to be one character");
  char32_t c = static_cast<unsigned char>(text[0]);
  if (text.size() > 1) {
    c &= 0xFFU >> (text.size() + 1);
    for (const char next : text.substr(1))
      c = (c << 6U) | (static_cast<unsigned char>(next) & 0x3FU);
  }
  return character{c};
}

typed_reader::scalar_or_container typed_reader::read_bytes(const object_type& o) {
  return bytes_of(o, "v");
}

typed_reader::scalar_or_container typed_reader::read_uuid(const object_type& o) {
  try {
    return uuid::parse(text_of(o, "v"));
  } catch (const error& e) {
    fail(e.code(), e.message());
  }
}

typed_reader::scalar_or_container typed_reader::read_decimal(const object_type& o) {
  const auto text = text_of(o, "v");
  const auto rules = scheme_ == scheme::failover ? decimal_rules::java : decimal_rules::python;
  if (!decimal_text(text, rules)) fail(errc::invalid_argument, not_a_decimal_message);
  return decimal{std::string(text)};
}

typed_reader::scalar_or_container typed_reader::read_path(const object_type& o) {
  const auto flavour = text_of(o, "flavour");
  if (flavour != "posix" && flavour != "windows")
    fail(errc::invalid_argument, "\"flavour\" must be posix or windows");
  return path{std::string(text_of(o, "v")),
              flavour == "posix" ? path::flavour::posix : path::flavour::windows};
}

// ---- times

/// The numbers of "c". Missing ones are 0; at least `required` must be present.
template <std::size_t Count>
std::array<std::int64_t, Count> typed_reader::components(const object_type& o,
                                                         std::size_t required) const {
  std::array<std::int64_t, Count> numbers{};
  std::size_t count = 0;
  for (const element number : array_of(o, "c")) {
    if (count == Count || number.get(numbers[count]) != simdjson::SUCCESS)
      fail(errc::invalid_argument,
           "\"c\" must contain at most " + std::to_string(Count) + " integers");
    ++count;
  }
  if (count < required)
    fail(errc::invalid_argument,
         "\"c\" must contain at least " + std::to_string(required) + " integers");
  return numbers;
}

std::chrono::year_month_day typed_reader::day_of(std::int64_t y, std::int64_t m,
                                                 std::int64_t d) const {
  using namespace std::chrono;
  const bool in_range = y >= 1 && y <= 9999 && m >= 1 && m <= 12 && d >= 1 && d <= 31;
  const year_month_day day{year{static_cast<int>(in_range ? y : 1)},
                           month{static_cast<unsigned>(in_range ? m : 1)},
                           std::chrono::day{static_cast<unsigned>(in_range ? d : 1)}};
  if (!in_range || !day.ok()) fail(errc::out_of_range, "not a valid date in the years 1 to 9999");
  return day;
}

std::chrono::microseconds typed_reader::clock_of(std::int64_t h, std::int64_t m, std::int64_t s,
                                                 std::int64_t us) const {
  if (h < 0 || h > 23 || m < 0 || m > 59 || s < 0 || s > 59 || us < 0 || us > 999'999)
    fail(errc::out_of_range, "not a valid time of day");
  return std::chrono::hours{h} + std::chrono::minutes{m} + std::chrono::seconds{s} +
         std::chrono::microseconds{us};
}

typed_reader::scalar_or_container typed_reader::read_datetime(const object_type& o) {
  const auto c = components<7>(o, 3);
  const element offset = member_of(o, "off_us");
  if (offset.is_null()) {
    fail(errc::unsupported_type,
         "a time without an offset is another moment in every time zone; set its UTC offset in "
         "\"off_us\"");
  }
  std::int64_t offset_us = 0;
  constexpr std::int64_t day_us = 86'400'000'000;
  if (offset.get(offset_us) != simdjson::SUCCESS || offset_us <= -day_us || offset_us >= day_us) {
    fail(errc::out_of_range, "\"off_us\" must be microseconds and less than a day");
  }
  const std::chrono::sys_days day = day_of(c[0], c[1], c[2]);
  const auto moment = day + clock_of(c[3], c[4], c[5], c[6]) - std::chrono::microseconds{offset_us};
  const auto seconds = std::chrono::floor<std::chrono::seconds>(moment);
  return instant{seconds, static_cast<std::uint32_t>((moment - seconds).count() * 1000),
                 std::chrono::microseconds{offset_us}};
}

typed_reader::scalar_or_container typed_reader::read_date(const object_type& o) {
  const auto c = components<3>(o, 3);
  return date{day_of(c[0], c[1], c[2])};
}

typed_reader::scalar_or_container typed_reader::read_time(const object_type& o) {
  const auto c = components<4>(o, 1);
  return time_of_day{clock_of(c[0], c[1], c[2], c[3])};
}

// ---- containers

typed_reader::scalar_or_container typed_reader::open_container(kind type,
                                                               const simdjson::dom::array& items) {
  container open{.type = type, .count = items.size(), .next = items.begin()};
  open.items.reserve(open.count);
  if (type == kind::map) open.keys.reserve(open.count);
  stack_.push_back(std::move(open));
  return std::nullopt;
}

typed_reader::scalar_or_container typed_reader::read_list(const object_type& o) {
  return open_container(kind::list, array_of(o, "v"));
}

typed_reader::scalar_or_container typed_reader::read_set(const object_type& o) {
  simdjson::dom::array order;
  if (scheme_ != scheme::failover || o["iteration_order"].get(order) != simdjson::SUCCESS) {
    return open_container(kind::set, array_of(o, "v"));
  }
  // Java prints a hash set in the order of its buckets, which only the caller knows.
  set result;
  for (const element item : order) {
    std::string_view text;
    if (item.get(text) != simdjson::SUCCESS)
      fail(errc::invalid_argument, "\"iteration_order\" must contain texts");
    result.items.emplace_back(text);
  }
  return result;
}

typed_reader::scalar_or_container typed_reader::read_map(const object_type& o) {
  return open_container(kind::map, array_of(o, "v"));
}

typed_reader::scalar_or_container typed_reader::read_array(const object_type& o) {
  if (scheme_ == scheme::failover) return read_list(o);
  const auto type = text_of(o, "dtype");
  const auto shape = array_of(o, "shape");
  std::uint64_t count = 0;
  if (shape.size() != 1)
    fail(errc::unsupported_type,
         "an array must have one dimension, not " + std::to_string(shape.size()));
  if (shape.at(0).get(count) != simdjson::SUCCESS)
    fail(errc::invalid_argument, "\"shape\" must be a count");
  static constexpr std::array<std::string_view, 4> types{"i32", "i64", "f32", "f64"};
  const auto entry = std::find(types.begin(), types.end(), type);
  if (entry == types.end())
    fail(errc::unsupported_type,
         "an array of '" + shortened(type) + "'; its elements must be i32, i64, f32 or f64");
  const auto index = static_cast<std::size_t>(entry - types.begin());
  array_value result{static_cast<array_value::element>(index), bytes_of(o, "le")};
  const std::size_t width = index % 2 == 0 ? 4 : 8;
  if (result.bytes.size() % width != 0 || result.bytes.size() / width != count) {
    fail(errc::invalid_argument, R"("le" does not have as many elements as "shape" declares)");
  }
  return result;
}

typed_reader::scalar_or_container typed_reader::read_enum(const object_type& o) {
  enumeration result;
  std::string_view text;
  if (o["to_string"].get(text) == simdjson::SUCCESS) result.text = text;
  if (o["base"].get(text) == simdjson::SUCCESS) result.float_mixin = text == "float";
  const element v = member_of(o, "v");
  if (v.is_string()) {
    result.underlying = std::make_shared<const value>(std::string_view(v));
    return result;
  }
  stack_.push_back(
      {.type = kind::enumeration, .count = 1, .only = v, .enumerator = std::move(result)});
  return std::nullopt;
}

// ---- types that only Java has

typed_reader::scalar_or_container typed_reader::read_optional(const object_type& o) {
  const element v = member_of(o, "v");
  if (v.is_null()) return boxed_optional{};
  stack_.push_back({.type = kind::optional, .count = 1, .only = v});
  return std::nullopt;
}

typed_reader::scalar_or_container typed_reader::read_object(const object_type& o) {
  return object{std::string(text_of(o, "class")), std::string(text_of(o, "to_string"))};
}

typed_reader::scalar_or_container typed_reader::read_identity(const object_type& o) {
  std::int64_t hash = 0;
  if (o["hash"].get(hash) != simdjson::SUCCESS || hash < INT32_MIN || hash > INT32_MAX)
    fail(errc::invalid_argument, "\"hash\" must be a signed 32-bit number");
  return object_identity{std::string(text_of(o, "class")), static_cast<std::int32_t>(hash)};
}

// ---- the table of forms

const typed_reader::form* typed_reader::find_form(std::string_view type) {
  constexpr unsigned failover = bit(scheme::failover);
  constexpr unsigned interop_value = bit(scheme::interop_value);
  constexpr unsigned interop = bit(scheme::interop) | interop_value;
  // The table is searched in order, so frequent types come first. "bytearray", "strsub" and
  // "intsub" are subclasses of Python's types; interop treats them as their base class.
  static constexpr std::array<form, 34> forms{{
      {"str", &typed_reader::read_str},
      {"int", &typed_reader::read_int},
      {"bool", &typed_reader::read_bool},
      {"none", &typed_reader::read_null},
      {"null", &typed_reader::read_null},
      {"f64", &typed_reader::read_f64},
      {"list", &typed_reader::read_list},
      {"map", &typed_reader::read_map},
      {"long", &typed_reader::read_int},
      {"double", &typed_reader::read_f64},
      {"float", &typed_reader::read_f32},
      {"f32", &typed_reader::read_f32},
      {"bytes", &typed_reader::read_bytes},
      {"tuple", &typed_reader::read_list},
      {"uuid", &typed_reader::read_uuid},
      {"datetime", &typed_reader::read_datetime},
      {"decimal", &typed_reader::read_decimal},
      {"bigdecimal", &typed_reader::read_decimal},
      {"path", &typed_reader::read_path},
      {"enum", &typed_reader::read_enum},
      {"set", &typed_reader::read_set},
      {"array", &typed_reader::read_array},
      {"byte", &typed_reader::read_int},
      {"short", &typed_reader::read_int},
      {"bigint", &typed_reader::read_int},
      {"char", &typed_reader::read_char},
      {"optional", &typed_reader::read_optional, failover},
      {"object", &typed_reader::read_object, failover},
      {"object_identity", &typed_reader::read_identity, failover},
      {"date", &typed_reader::read_date, interop_value},
      {"time", &typed_reader::read_time, interop_value},
      {"bytearray", &typed_reader::read_bytes, interop},
      {"strsub", &typed_reader::read_str, interop},
      {"intsub", &typed_reader::read_int, interop},
  }};
  const auto* const entry =
      std::find_if(forms.begin(), forms.end(), [&](const form& f) { return f.type == type; });
  return entry == forms.end() ? nullptr : entry;
}

}  // namespace HOLDFAST_NAMESPACE::detail::key
