#include "key/text_writer.hpp"

#include "base/utf8.hpp"
#include "key/map_order.hpp"
#include "key/messages.hpp"
#include "key/number_text.hpp"
#include "key/time_text.hpp"

#include <array>
#include <charconv>
#include <cstring>

namespace HOLDFAST_NAMESPACE::detail::key {

namespace {

/// The text of a call without arguments.
constexpr std::string_view no_arguments = "NO-ARG";

// The marks of style `escaped` begin with a backslash. Inside a text a backslash is doubled, so a
// text cannot contain a mark.
constexpr std::string_view null_mark = "\\0";
constexpr std::string_view empty_text_mark = "\\e";
constexpr std::string_view list_mark = "\\-";  // for an empty list and for [null]
constexpr std::string_view nested_begin = "\\[";
constexpr std::string_view nested_end = "\\]";

/// The characters that a text must escape.
using special_set = std::array<bool, 256>;
constexpr special_set specials_of(std::string_view characters) {
  special_set set{};
  for (const char c : characters) set[static_cast<unsigned char>(c)] = true;
  return set;
}
constexpr special_set segment_specials = specials_of(":,\\");
constexpr special_set string_form_specials = specials_of(":,\\={}[]");

}  // namespace

// ---- the call

void text_writer::begin_arguments(std::size_t count) {
  if (count == 0) out_.put(no_arguments);
  push(frame_kind::arguments);
}

void text_writer::begin_keywords(std::span<map_slot>) {
  fail(errc::invalid_argument, "a failover key has no keyword arguments; pass them by position");
}

void text_writer::end_arguments() { pop(); }

void text_writer::begin_value() {
  count_value();
  lone_element_ = false;
  const bool first = value_count() == 1;
  switch (current_frame()) {
    case frame_kind::arguments:
      if (!first) out_.put(':');
      break;
    case frame_kind::list:
    case frame_kind::set:
      if (!first) out_.put(in_string_form() ? std::string_view(", ") : std::string_view(","));
      break;
    case frame_kind::keywords:
    case frame_kind::map:
    case frame_kind::optional:
      break;
  }
}

// ---- scalars

void text_writer::put_null() {
  if (escaped_) out_.put(null_mark);
  else if (in_string_form()) out_.put("null");
}

void text_writer::null() {
  const bool lone = lone_element_;
  begin_value();
  if (lone && escaped_) out_.put(list_mark);  // the list [null] is not null
  put_null();
}

void text_writer::boolean(bool v) {
  begin_value();
  out_.put(v ? std::string_view("true") : std::string_view("false"));
}

template <class Number>
void text_writer::put_number(Number v) {
  char text[32];  // NOLINT(*-avoid-c-arrays)
  std::size_t length = 0;
  if constexpr (std::is_floating_point_v<Number>) length = java_text(v, text);
  else length = static_cast<std::size_t>(std::to_chars(text, text + sizeof text, v).ptr - text);
  out_.put(std::string_view(text, length));
}

void text_writer::integer(std::int64_t v) {
  begin_value();
  put_number(v);
}
void text_writer::unsigned_integer(std::uint64_t v) {
  begin_value();
  put_number(v);
}
void text_writer::float32(float v) {
  begin_value();
  put_number(v);
}
void text_writer::float64(double v) {
  begin_value();
  put_number(v);
}

void text_writer::character(char32_t v) {
  char encoded[4];  // NOLINT(*-avoid-c-arrays)
  const auto length = encode_utf8(v, encoded);
  begin_value();
  if (length == 0) fail(errc::ill_formed_text, not_a_character_message);
  put_text({encoded, length});
}

void text_writer::text(std::string_view v) {
  begin_value();
  put_text(v);
}

void text_writer::put_text(std::string_view v) {
  if (!is_utf8(v)) fail(errc::ill_formed_text, ill_formed_text_message);
  if (escaped_) put_escaped(v);
  else out_.put(v);
}

void text_writer::put_escaped(std::string_view v) {
  if (v.empty()) return out_.put(empty_text_mark);
  if (v == no_arguments) out_.put('\\');
  const special_set& specials = in_string_form() ? string_form_specials : segment_specials;
  std::size_t written = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (!specials[static_cast<unsigned char>(v[i])]) continue;
    out_.put(v.substr(written, i - written));
    out_.put('\\');
    written = i;  // the character itself is written with the text after it
  }
  out_.put(v.substr(written));
}

void text_writer::uuid(const key::uuid& v) {
  begin_value();
  out_.put(v.to_string());
}

void text_writer::decimal(std::string_view v) {
  begin_value();
  const auto canonical = decimal_text(v, decimal_rules::java);
  if (!canonical) fail(errc::invalid_argument, not_a_decimal_message);
  out_.put(*canonical);
}

void text_writer::big_integer(std::string_view digits) {
  begin_value();
  const auto canonical = integer_text(digits);
  if (!canonical) fail(errc::invalid_argument, "not a whole number; expected decimal digits");
  out_.put(*canonical);
}

void text_writer::instant(const key::instant& v) {
  begin_value();
  const auto text = java_text(v);
  if (!text) fail(errc::out_of_range, "the time is outside the years -32767 to 32767");
  out_.put(*text);
}

void text_writer::date(const key::date&) {
  begin_value();
  unsupported("date");
}
void text_writer::time_of_day(const key::time_of_day&) {
  begin_value();
  unsupported("time of day");
}

void text_writer::path(std::string_view v, key::path::flavour) { text(v); }

// ---- lists

void text_writer::open_sequence(frame_kind kind, std::size_t count) {
  begin_value();
  if (in_string_form()) {
    out_.put('[');
  } else if (escaped_) {
    if (current_frame() != frame_kind::arguments) out_.put(nested_begin);
    else if (count == 0) out_.put(list_mark);
  }
  lone_element_ = count == 1 && !in_string_form() && current_frame() == frame_kind::arguments;
  push(kind);
}

void text_writer::close_sequence() {
  pop();
  if (in_string_form()) out_.put(']');
  else if (escaped_ && current_frame() != frame_kind::arguments) out_.put(nested_end);
}

void text_writer::begin_list(std::size_t count) { open_sequence(frame_kind::list, count); }
void text_writer::end_list() { close_sequence(); }
void text_writer::begin_set(std::size_t count) { open_sequence(frame_kind::set, count); }
void text_writer::end_set() { close_sequence(); }

void text_writer::refuse_in_string_form(std::string_view type_name) const {
  if (in_string_form()) unsupported(std::string(type_name) + " inside a map or an Optional");
}

/// Bytes are a Java byte[], whose elements are signed.
void text_writer::bytes(std::span<const std::byte> v) {
  refuse_in_string_form("bytes");
  open_sequence(frame_kind::list, v.size());
  for (const std::byte b : v) integer(static_cast<std::int8_t>(b));
  close_sequence();
}

void text_writer::array(array_value::element type, std::span<const std::byte> little_endian) {
  refuse_in_string_form("array");
  const auto write_elements = [&]<class Element>(Element element) {
    open_sequence(frame_kind::list, little_endian.size() / sizeof element);
    for (std::size_t i = 0; i + sizeof element <= little_endian.size(); i += sizeof element) {
      std::memcpy(&element, little_endian.data() + i, sizeof element);
      begin_value();
      put_number(element);
    }
    close_sequence();
  };
  switch (type) {
    case array_value::element::i32:
      return write_elements(std::int32_t{});
    case array_value::element::i64:
      return write_elements(std::int64_t{});
    case array_value::element::f32:
      return write_elements(float{});
    case array_value::element::f64:
      return write_elements(double{});
  }
}

// ---- maps and Optionals

void text_writer::begin_map(std::span<map_slot> slots) {
  begin_value();
  refuse_duplicates(*this, slots);
  ++string_form_depth_;
  out_.put('{');
  push(frame_kind::map);
}

void text_writer::entry(const map_slot& slot) {
  set_entry_key(slot.key);
  if (value_count() != 0) out_.put(", ");
  const map_key& k = slot.key;
  switch (k.type) {
    case map_key::kind::null:
      put_null();
      break;
    case map_key::kind::boolean:
      out_.put(k.truth ? std::string_view("true") : std::string_view("false"));
      break;
    case map_key::kind::integer:
      put_number(k.integer);
      break;
    case map_key::kind::unsigned_integer:
      put_number(k.unsigned_integer);
      break;
    case map_key::kind::float32:
      put_number(k.single);
      break;
    case map_key::kind::float64:
      put_number(k.number);
      break;
    case map_key::kind::text:
      put_text(k.text);
      break;
    case map_key::kind::bytes:
      unsupported("bytes as a map key");
    case map_key::kind::other:
      if (k.text.data() == nullptr) unsupported(std::string(k.type_name) + " as a map key");
      put_text(k.text);
      break;
  }
  out_.put('=');
}

void text_writer::end_map() {
  pop();
  --string_form_depth_;
  out_.put('}');
}

void text_writer::begin_optional(bool has_item) {
  begin_value();
  ++string_form_depth_;
  out_.put(has_item ? std::string_view("Optional[") : std::string_view("Optional.empty"));
  push(frame_kind::optional);
}

void text_writer::end_optional() {
  const bool had_item = value_count() != 0;
  pop();
  --string_form_depth_;
  if (had_item) out_.put(']');
}

// ---- objects

void text_writer::object(const key::object& v) { text(v.text); }

void text_writer::object_identity(const key::object_identity& v) {
  begin_value();
  if (escaped_) {
    fail(errc::unsupported_type, "an object of type '" + v.class_name +
                                     "' has no stable text form; give it one, use a custom key "
                                     "generator, or choose style exact");
  }
  if (on_unstable_ != nullptr && *on_unstable_) (*on_unstable_)(v.class_name);
  if (!is_utf8(v.class_name))
    fail(errc::ill_formed_text, "the class name is not well-formed UTF-8");
  out_.put(v.class_name);
  out_.put('@');
  char text[16];  // NOLINT(*-avoid-c-arrays)
  const auto end =
      std::to_chars(text, text + sizeof text, static_cast<std::uint32_t>(v.hash), 16).ptr;
  out_.put(std::string_view(text, static_cast<std::size_t>(end - text)));
}

bool text_writer::enumerator_by_text(const key::enumeration&) { return true; }

}  // namespace HOLDFAST_NAMESPACE::detail::key
