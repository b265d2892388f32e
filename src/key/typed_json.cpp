#include <holdfast/key/typed_json.hpp>

#include "base/utf8.hpp"
#include "key/map_order.hpp"
#include "key/number_text.hpp"
#include "key/typed_json_value.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

namespace HOLDFAST_NAMESPACE::key {

using simdjson::dom::element;

error json_error(simdjson::error_code code, std::string path) {
  if (code == simdjson::DEPTH_ERROR) {
    return {errc::too_deep,
            "nested deeper than " + std::to_string(max_height) + " levels; flatten the value or hash the inner part first",
            {.path = std::move(path)}};
  }
  if (code == simdjson::UTF8_ERROR) return {errc::ill_formed_text, "the JSON is not well-formed UTF-8", {.path = std::move(path)}};
  std::string_view why = simdjson::error_message(code);
  if (const auto end = why.find(". "); end != std::string_view::npos) why = why.substr(0, end);
  return {errc::malformed, "not JSON: " + std::string(why), {.path = std::move(path)}};
}

namespace {

/// A name for a message, cut between characters.
std::string shortened(std::string_view name) {
  constexpr std::size_t shown = 60;
  const auto size = code_point_prefix(name, shown);
  return std::string(name.substr(0, size)) + (size < name.size() ? "..." : "");
}

/// Digits that a direct conversion did not take: a plus sign, leading zeros, or too many of them.
value within_64_bits(std::string digits) {
  std::int64_t as_signed = 0;
  std::uint64_t as_unsigned = 0;
  const auto* end = digits.data() + digits.size();
  if (std::from_chars(digits.data(), end, as_unsigned).ec == std::errc{} && digits.front() != '-') return as_unsigned;
  if (std::from_chars(digits.data(), end, as_signed).ec == std::errc{}) return as_signed;
  return big_integer{std::move(digits)};
}

}  // namespace

typed_reader::typed_reader(scheme meant_for) : scheme_(meant_for) {}

value typed_reader::read(element json, std::string_view root) {
  root_ = root;
  open_.clear();
  auto done = begin(json);
  while (!open_.empty()) {
    container& inside = open_.back();
    if (done) {
      auto& to = inside.wants_key() ? inside.keys : inside.items;
      to.push_back(std::move(*done));
      done.reset();
    }
    if (inside.complete()) {
      done = finish(inside);
      open_.pop_back();
    } else {
      done = begin(next_in(inside));
    }
  }
  if (!done) fail(errc::internal, "a value was opened and never completed");
  return std::move(*done);
}

bool typed_reader::container::wants_key() const noexcept { return type == kind::map && keys.size() == items.size(); }

bool typed_reader::container::complete() const noexcept { return items.size() == count; }

element typed_reader::next_in(container& inside) {
  if (inside.type == kind::optional || inside.type == kind::enumeration) return inside.only;
  if (inside.type != kind::map) {
    const element item = *inside.next;
    ++inside.next;
    return item;
  }
  simdjson::dom::array pair;
  const element entry = *inside.next;
  if (entry.get(pair) != simdjson::SUCCESS || pair.size() != 2) fail(errc::invalid_argument, "an entry of a map must be [key, value]");
  if (inside.wants_key()) return pair.at(0);
  ++inside.next;
  return pair.at(1);
}

value typed_reader::finish(container& done) {
  switch (done.type) {
    case kind::list:
      return list{std::move(done.items)};
    case kind::set:
      return set{std::move(done.items)};
    case kind::optional:  // Java has no Optional of null
      if (done.items.front().is_null()) return boxed_optional{};
      return boxed_optional{std::make_shared<const value>(std::move(done.items.front()))};
    case kind::enumeration:
      done.enumerator.underlying = std::make_shared<const value>(std::move(done.items.front()));
      return std::move(done.enumerator);
    case kind::map:
      break;
  }
  map result;
  result.items.reserve(done.items.size());
  for (std::size_t i = 0; i < done.items.size(); ++i) result.items.emplace_back(std::move(done.keys[i]), std::move(done.items[i]));
  return result;
}

std::string typed_reader::path_to_value() const {
  constexpr std::size_t shown_levels = 48;  // the inner end of a very deep path says more than its beginning
  std::string text = open_.size() > shown_levels ? "..." : std::string(root_);
  for (std::size_t i = open_.size() > shown_levels ? open_.size() - shown_levels : 0; i < open_.size(); ++i) {
    const container& step = open_[i];
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
        text += step.wants_key() ? index : ".items[" + shown_key(step.keys.back(), step.items.size()) + "]";
        break;
    }
  }
  return text;
}

std::string typed_reader::shown_key(const value& key, std::size_t index) {
  if (const auto* text = key.if_is<std::string>()) {
    map_key k;
    k.type = map_key::kind::text;
    k.text = *text;
    return shown(k);
  }
  if (const auto* u = key.if_is<std::uint64_t>()) return std::to_string(*u);
  if (const auto* i = key.if_is<std::int64_t>()) return std::to_string(*i);
  return std::to_string(index);
}

/// A scalar at once; a container is opened, and nothing comes back yet.
std::optional<value> typed_reader::begin(element json) {
  if (open_.size() >= max_height) {
    fail(errc::too_deep, "nested deeper than " + std::to_string(max_height) + " levels; flatten the value or hash the inner part first");
  }
  simdjson::dom::object object;
  if (json.get(object) != simdjson::SUCCESS) fail(errc::invalid_argument, R"(expected a typed value like {"t":"int","v":"42"})");
  std::string_view type;
  if (object["t"].get(type) != simdjson::SUCCESS) fail(errc::invalid_argument, "a typed value needs a text \"t\" that names its type");
  for (const auto& [name, reader] : readers) {
    if (name == type) return (this->*reader)(object);
  }
  unsupported(type);
}

void typed_reader::fail(errc code, const std::string& message) const { throw error(code, message, {.path = path_to_value()}); }

void typed_reader::unsupported(std::string_view type) const {
  fail(errc::unsupported_type, "a value of type '" + shortened(type) + "' cannot be part of a key; pass its text or its parts instead");
}

// ---- members of the JSON object

std::string_view typed_reader::text_of(const object_type& o, const char* name) const {
  std::string_view text;
  if (o[name].get(text) != simdjson::SUCCESS) fail(errc::invalid_argument, std::string("expected a text \"") + name + "\"");
  return text;
}

simdjson::dom::array typed_reader::array_of(const object_type& o, const char* name) const {
  simdjson::dom::array items;
  if (o[name].get(items) != simdjson::SUCCESS) fail(errc::invalid_argument, std::string("expected an array \"") + name + "\"");
  return items;
}

element typed_reader::member_of(const object_type& o, const char* name) const {
  element found;
  if (o[name].get(found) != simdjson::SUCCESS) fail(errc::invalid_argument, std::string("\"") + name + "\" is missing");
  return found;
}

std::string typed_reader::hex_of(const object_type& o, const char* name) const {
  const auto hex = text_of(o, name);
  std::string bytes(hex.size() / 2, '\0');
  bool good = hex.size() % 2 == 0;
  for (std::size_t i = 0; good && i < bytes.size(); ++i) {
    unsigned byte = 0;
    const auto [end, failed] = std::from_chars(hex.data() + 2 * i, hex.data() + 2 * i + 2, byte, 16);
    good = failed == std::errc{} && end == hex.data() + 2 * i + 2;
    bytes[i] = static_cast<char>(byte);
  }
  if (!good) fail(errc::invalid_argument, std::string("\"") + name + "\" is not an even number of hexadecimal digits");
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
  if (failed != std::errc{} || end != text.data() + text.size() || text.size() != sizeof(Bits) * 2) {
    fail(errc::invalid_argument,
         std::string("\"") + name + "\" must be 0x and " + std::to_string(sizeof(Bits) * 2) + " hexadecimal digits");
  }
  return bits;
}

// ---- scalars

typed_reader::maybe typed_reader::read_null(const object_type&) { return value(); }

typed_reader::maybe typed_reader::read_bool(const object_type& o) {
  bool v = false;
  if (o["v"].get(v) != simdjson::SUCCESS) fail(errc::invalid_argument, "expected \"v\" to be true or false");
  return v;
}

typed_reader::maybe typed_reader::read_int(const object_type& o) {
  const element v = member_of(o, "v");
  std::int64_t as_signed = 0;
  std::uint64_t as_unsigned = 0;
  if (v.get(as_signed) == simdjson::SUCCESS) return as_signed;
  if (v.get(as_unsigned) == simdjson::SUCCESS) return as_unsigned;
  std::string_view text;
  if (v.get(text) == simdjson::SUCCESS) {
    const auto* begin = text.data();
    const auto* end = begin + text.size();
    if (const auto r = std::from_chars(begin, end, as_signed); r.ec == std::errc{} && r.ptr == end) return as_signed;
    if (const auto r = std::from_chars(begin, end, as_unsigned); r.ec == std::errc{} && r.ptr == end) return as_unsigned;
    if (auto digits = integer_text(text)) return within_64_bits(*std::move(digits));
  }
  fail(errc::invalid_argument, "expected \"v\" to be a whole number in decimal digits");
}

typed_reader::maybe typed_reader::read_f64(const object_type& o) { return std::bit_cast<double>(bits_of<std::uint64_t>(o)); }

typed_reader::maybe typed_reader::read_f32(const object_type& o) { return std::bit_cast<float>(bits_of<std::uint32_t>(o)); }

typed_reader::maybe typed_reader::read_str(const object_type& o) {
  // Ill-formed text cannot stand in JSON; given as bytes, it is refused here as it would be later.
  if (o["wtf8"].error() == simdjson::SUCCESS) {
    auto text = hex_of(o, "wtf8");
    if (!is_utf8(text)) fail(errc::ill_formed_text, "the text is not well-formed UTF-8; pass it as bytes, or repair it");
    return value(std::move(text));
  }
  return text_of(o, "v");
}

typed_reader::maybe typed_reader::read_char(const object_type& o) {
  const auto text = text_of(o, "v");
  if (count_code_points(text) != 1) fail(errc::invalid_argument, "expected \"v\" to be one character");
  char32_t c = static_cast<unsigned char>(text[0]);
  if (text.size() > 1) {
    c &= 0xFFU >> (text.size() + 1);
    for (const char next : text.substr(1)) c = (c << 6U) | (static_cast<unsigned char>(next) & 0x3FU);
  }
  return character{c};
}

typed_reader::maybe typed_reader::read_bytes(const object_type& o) { return bytes_of(o, "v"); }

typed_reader::maybe typed_reader::read_uuid(const object_type& o) {
  try {
    return uuid::parse(text_of(o, "v"));
  } catch (const error& e) {
    fail(e.code(), e.message());
  }
}

typed_reader::maybe typed_reader::read_decimal(const object_type& o) {
  const auto text = text_of(o, "v");
  const auto rules = scheme_ == scheme::failover ? decimal_rules::java : decimal_rules::python;
  if (!decimal_text(text, rules)) fail(errc::invalid_argument, "not a decimal number; expected digits like 1.10 or 1E-7");
  return decimal{std::string(text)};
}

typed_reader::maybe typed_reader::read_path(const object_type& o) {
  const auto flavour = text_of(o, "flavour");
  if (flavour != "posix" && flavour != "windows") fail(errc::invalid_argument, "\"flavour\" must be posix or windows");
  return path{std::string(text_of(o, "v")), flavour == "posix" ? path::flavour::posix : path::flavour::windows};
}

// ---- times

/// The numbers of "c", padded with zeros up to `count`; at least `needed` must be there.
template <std::size_t Count>
std::array<std::int64_t, Count> typed_reader::components(const object_type& o, std::size_t needed) const {
  std::array<std::int64_t, Count> numbers{};
  std::size_t n = 0;
  for (const element each : array_of(o, "c")) {
    if (n == Count || each.get(numbers[n]) != simdjson::SUCCESS)
      fail(errc::invalid_argument, "\"c\" must hold at most " + std::to_string(Count) + " whole numbers");
    ++n;
  }
  if (n < needed) fail(errc::invalid_argument, "\"c\" must hold at least " + std::to_string(needed) + " whole numbers");
  return numbers;
}

std::chrono::year_month_day typed_reader::day_of(std::int64_t y, std::int64_t m, std::int64_t d) const {
  using namespace std::chrono;
  const bool in_range = y >= 1 && y <= 9999 && m >= 1 && m <= 12 && d >= 1 && d <= 31;
  const year_month_day day{year{static_cast<int>(in_range ? y : 1)}, month{static_cast<unsigned>(in_range ? m : 1)},
                           std::chrono::day{static_cast<unsigned>(in_range ? d : 1)}};
  if (!in_range || !day.ok()) fail(errc::out_of_range, "not a day of the years 1 to 9999");
  return day;
}

std::chrono::microseconds typed_reader::clock_of(std::int64_t h, std::int64_t m, std::int64_t s, std::int64_t us) const {
  if (h < 0 || h > 23 || m < 0 || m > 59 || s < 0 || s > 59 || us < 0 || us > 999'999) fail(errc::out_of_range, "not a time of day");
  return std::chrono::hours{h} + std::chrono::minutes{m} + std::chrono::seconds{s} + std::chrono::microseconds{us};
}

typed_reader::maybe typed_reader::read_datetime(const object_type& o) {
  const auto c = components<7>(o, 3);
  const element offset = member_of(o, "off_us");
  if (offset.is_null()) {
    fail(errc::unsupported_type, "a time without an offset is another moment in every time zone; say its UTC offset in \"off_us\"");
  }
  std::int64_t offset_us = 0;
  constexpr std::int64_t day_us = 86'400'000'000;
  if (offset.get(offset_us) != simdjson::SUCCESS || offset_us <= -day_us || offset_us >= day_us) {
    fail(errc::out_of_range, "\"off_us\" must be microseconds of less than a day");
  }
  const std::chrono::sys_days day = day_of(c[0], c[1], c[2]);
  const auto moment = day + clock_of(c[3], c[4], c[5], c[6]) - std::chrono::microseconds{offset_us};
  const auto seconds = std::chrono::floor<std::chrono::seconds>(moment);
  return instant{seconds, static_cast<std::uint32_t>((moment - seconds).count() * 1000), std::chrono::microseconds{offset_us}};
}

typed_reader::maybe typed_reader::read_date(const object_type& o) {
  if (scheme_ != scheme::interop_value) unsupported("date");
  const auto c = components<3>(o, 3);
  return date{day_of(c[0], c[1], c[2])};
}

typed_reader::maybe typed_reader::read_time(const object_type& o) {
  if (scheme_ != scheme::interop_value) unsupported("time");
  const auto c = components<4>(o, 1);
  return time_of_day{clock_of(c[0], c[1], c[2], c[3])};
}

// ---- containers

typed_reader::maybe typed_reader::open_items(kind type, const simdjson::dom::array& items) {
  container opened{.type = type, .count = items.size(), .next = items.begin()};
  opened.items.reserve(opened.count);
  if (type == kind::map) opened.keys.reserve(opened.count);
  open_.push_back(std::move(opened));
  return std::nullopt;
}

typed_reader::maybe typed_reader::read_list(const object_type& o) { return open_items(kind::list, array_of(o, "v")); }

typed_reader::maybe typed_reader::read_set(const object_type& o) {
  simdjson::dom::array order;
  if (scheme_ != scheme::failover || o["iteration_order"].get(order) != simdjson::SUCCESS) {
    return open_items(kind::set, array_of(o, "v"));
  }
  // Java prints a hash set in the order of its buckets, which only the caller can know.
  set result;
  for (const element each : order) {
    std::string_view text;
    if (each.get(text) != simdjson::SUCCESS) fail(errc::invalid_argument, "\"iteration_order\" must hold texts");
    result.items.emplace_back(text);
  }
  return result;
}

typed_reader::maybe typed_reader::read_map(const object_type& o) { return open_items(kind::map, array_of(o, "v")); }

typed_reader::maybe typed_reader::read_array(const object_type& o) {
  if (scheme_ == scheme::failover) return read_list(o);
  const auto type = text_of(o, "dtype");
  const auto shape = array_of(o, "shape");
  std::uint64_t count = 0;
  if (shape.size() != 1) fail(errc::unsupported_type, "an array must have one dimension, and this has " + std::to_string(shape.size()));
  if (shape.at(0).get(count) != simdjson::SUCCESS) fail(errc::invalid_argument, "\"shape\" must be a count");
  static constexpr std::array<std::string_view, 4> types{"i32", "i64", "f32", "f64"};
  const auto found = std::find(types.begin(), types.end(), type);
  if (found == types.end())
    fail(errc::unsupported_type, "an array of '" + shortened(type) + "'; its elements must be i32, i64, f32 or f64");
  const auto index = static_cast<std::size_t>(found - types.begin());
  array_value result{static_cast<array_value::element>(index), bytes_of(o, "le")};
  const std::size_t width = index % 2 == 0 ? 4 : 8;
  if (result.bytes.size() % width != 0 || result.bytes.size() / width != count) {
    fail(errc::invalid_argument, R"("le" does not hold as many elements as "shape" says)");
  }
  return result;
}

typed_reader::maybe typed_reader::read_enum(const object_type& o) {
  enumeration result;
  std::string_view text;
  if (o["to_string"].get(text) == simdjson::SUCCESS) result.text = text;
  if (o["base"].get(text) == simdjson::SUCCESS) result.float_mixin = text == "float";
  const element v = member_of(o, "v");
  if (v.is_string()) {
    result.underlying = std::make_shared<const value>(std::string_view(v));
    return result;
  }
  open_.push_back({.type = kind::enumeration, .count = 1, .only = v, .enumerator = std::move(result)});
  return std::nullopt;
}

// ---- what only one language has

typed_reader::maybe typed_reader::read_optional(const object_type& o) {
  if (scheme_ != scheme::failover) unsupported("optional");
  const element v = member_of(o, "v");
  if (v.is_null()) return boxed_optional{};
  open_.push_back({.type = kind::optional, .count = 1, .only = v});
  return std::nullopt;
}

typed_reader::maybe typed_reader::read_object(const object_type& o) {
  if (scheme_ != scheme::failover) unsupported("object");
  return object{std::string(text_of(o, "class")), std::string(text_of(o, "to_string"))};
}

typed_reader::maybe typed_reader::read_identity(const object_type& o) {
  if (scheme_ != scheme::failover) unsupported("object_identity");
  std::int64_t hash = 0;
  if (o["hash"].get(hash) != simdjson::SUCCESS || hash < INT32_MIN || hash > INT32_MAX)
    fail(errc::invalid_argument, "\"hash\" must be a signed 32-bit number");
  return object_identity{std::string(text_of(o, "class")), static_cast<std::int32_t>(hash)};
}

/// Subclasses of Python's types: interop takes them for what they derive from, auto mode refuses them.
typed_reader::maybe typed_reader::read_bytearray(const object_type& o) {
  if (scheme_ != scheme::interop && scheme_ != scheme::interop_value) unsupported("bytearray");
  return read_bytes(o);
}
typed_reader::maybe typed_reader::read_text_subclass(const object_type& o) {
  if (scheme_ != scheme::interop && scheme_ != scheme::interop_value) unsupported("strsub");
  return read_str(o);
}
typed_reader::maybe typed_reader::read_int_subclass(const object_type& o) {
  if (scheme_ != scheme::interop && scheme_ != scheme::interop_value) unsupported("intsub");
  return read_int(o);
}

// The frequent ones first: the table is searched in order.
constexpr std::array<std::pair<std::string_view, typed_reader::member>, 34> typed_reader::readers{{
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
    {"optional", &typed_reader::read_optional},
    {"object", &typed_reader::read_object},
    {"object_identity", &typed_reader::read_identity},
    {"date", &typed_reader::read_date},
    {"time", &typed_reader::read_time},
    {"bytearray", &typed_reader::read_bytearray},
    {"strsub", &typed_reader::read_text_subclass},
    {"intsub", &typed_reader::read_int_subclass},
}};

struct typed_json_reader::state {
  typed_reader reader;
  simdjson::dom::parser parser{};
};

typed_json_reader::typed_json_reader(key::scheme meant_for) : state_(new state{.reader = typed_reader(meant_for)}) {}
typed_json_reader::typed_json_reader(typed_json_reader&&) noexcept = default;
typed_json_reader& typed_json_reader::operator=(typed_json_reader&&) noexcept = default;
typed_json_reader::~typed_json_reader() = default;

value typed_json_reader::read(std::string_view json) {
  if (const auto failed = state_->parser.allocate(std::max<std::size_t>(json.size(), 256), max_json_depth))
    throw json_error(failed, "value");
  element root;
  if (const auto failed = state_->parser.parse(json.data(), json.size()).get(root)) throw json_error(failed, "value");
  return state_->reader.read(root, "value");
}

}  // namespace HOLDFAST_NAMESPACE::key
