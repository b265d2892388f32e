#include "outbox/entry.hpp"

#include "base/base64.hpp"
#include "base/hex.hpp"
#include "base/utf8.hpp"
#include "base/uuid.hpp"
#include "outbox/checks.hpp"

#include <simdjson.h>

#include <array>
#include <cstddef>
#include <span>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

namespace json = simdjson::ondemand;

constexpr std::size_t largest_json = std::size_t{64} << 20U;

// ---- write ----

void append_field(std::string& out, std::string_view name, std::string_view text) {
  if (text.empty()) return;
  out += ",\"";
  out += name;
  out += "\":";
  append_json_text(out, text);
}

/// An object or list is embedded unchanged, and can be cut out again byte by byte.
bool is_json_document(std::string_view text) {
  if (text.size() < 2) return false;
  const bool object = text.front() == '{' && text.back() == '}';
  const bool list = text.front() == '[' && text.back() == ']';
  if (!object && !list) return false;
  thread_local simdjson::dom::parser parser(largest_json);
  simdjson::dom::element root;
  return parser.parse(text.data(), text.size(), true).get(root) == simdjson::SUCCESS;
}

void append_payload(std::string& out, const event& event) {
  if (!event.payload_ref.empty()) {
    append_field(out, "payloadRef", event.payload_ref);
    append_field(out, "sha256", event.payload_sha256);
    out += ",\"size\":";
    out += std::to_string(event.payload_size);
  } else if (is_json_document(event.payload)) {
    out += ",\"payload\":";
    out += event.payload;
  } else if (is_utf8(event.payload)) {
    out += ",\"payloadText\":";
    append_json_text(out, event.payload);
  } else {
    out += R"(,"payloadBase64":")";
    const auto begin = out.size();
    out.resize(begin + base64_size(event.payload.size()));
    encode_base64(std::as_bytes(std::span(event.payload)), out.data() + begin);
    out += '"';
  }
}

// ---- read ----

/// The last millisecond of the year 9999.
constexpr std::int64_t last_timestamp_ms = 253'402'300'799'999;

[[noreturn]] void refuse_entry(std::string_view reason) {
  throw error(errc::malformed, "the stored text is not a valid entry: " + std::string(reason));
}

template <class T>
T value_or_refuse(simdjson::simdjson_result<T> result, std::string_view reason) {
  T value{};
  if (std::move(result).get(value) != simdjson::SUCCESS) refuse_entry(reason);
  return value;
}

std::string text_of(json::value& value) {
  return std::string(value_or_refuse(value.get_string(), "a string is missing"));
}

std::int64_t number_of(json::value& value) {
  const auto number = value_or_refuse(value.get_int64(), "a number is missing");
  if (number < 0) refuse_entry("a number is negative");
  return number;
}

/// Returns the bytes of a payload that is a JSON document, unchanged.
std::string document_of(json::value& value) {
  std::string_view raw;
  const auto type = value_or_refuse(value.type(), "its payload is cut off");
  if (type == json::json_type::object) {
    auto object = value_or_refuse(value.get_object(), "its payload is broken");
    raw = value_or_refuse(object.raw_json(), "its payload is broken");
  } else if (type == json::json_type::array) {
    auto array = value_or_refuse(value.get_array(), "its payload is broken");
    raw = value_or_refuse(array.raw_json(), "its payload is broken");
  } else {
    refuse_entry("its payload is neither an object nor a list");
  }
  while (!raw.empty() && raw.back() != '}' && raw.back() != ']') raw.remove_suffix(1);
  // It is JSON whatever the content type says.
  if (nests_too_deep(raw)) refuse_entry("the payload of an event nests deeper than 1024");
  return std::string(raw);
}

std::string bytes_of(json::value& value) {
  const auto text = value_or_refuse(value.get_string(), "its payload is not a string");
  const auto size = decoded_base64_size(text);
  if (!size) refuse_entry("its payload is not Base64");
  std::string bytes(*size, '\0');
  if (!decode_base64(text, reinterpret_cast<std::byte*>(bytes.data())))
    refuse_entry("its payload is not Base64");
  return bytes;
}

void read_headers(json::value& value, event& event) {
  auto object = value_or_refuse(value.get_object(), "its headers are not an object");
  for (auto result : object) {
    json::field field;
    if (std::move(result).get(field) != simdjson::SUCCESS) refuse_entry("its headers are broken");
    std::string name(value_or_refuse(field.unescaped_key(), "a header does not have a name"));
    event.headers.insert_or_assign(std::move(name), text_of(field.value()));
  }
}

constexpr std::array<std::pair<std::string_view, std::string event::*>, 10> text_fields{{
    {"id", &event::id},
    {"type", &event::type},
    {"key", &event::key},
    {"aggregateType", &event::aggregate_type},
    {"aggregateId", &event::aggregate_id},
    {"schema", &event::schema},
    {"contentType", &event::content_type},
    {"payloadText", &event::payload},
    {"payloadRef", &event::payload_ref},
    {"sha256", &event::payload_sha256},
}};

void read_field(std::string_view name, json::value& value, entry_content& content,
                bool& has_version) {
  auto& event = content.event;
  for (const auto& [field, member] : text_fields) {
    if (name != field) continue;
    event.*member = text_of(value);
    return;
  }
  if (name == "v") {
    if (number_of(value) != entry_version) {
      throw error(errc::unsupported_type,
                  "the outbox has an entry of another version than 1; use a newer Holdfast");
    }
    has_version = true;
  } else if (name == "timeToLive") {
    event.time_to_live = std::chrono::milliseconds(number_of(value));
  } else if (name == "headers") {
    read_headers(value, event);
  } else if (name == "payload") {
    event.payload = document_of(value);
  } else if (name == "payloadBase64") {
    event.payload = bytes_of(value);
  } else if (name == "size") {
    event.payload_size = static_cast<std::uint64_t>(number_of(value));
  } else if (name == "createdAt") {
    content.created_ms = number_of(value);
    if (content.created_ms > last_timestamp_ms) refuse_entry("its time is after the year 9999");
  } else if (name == "seq") {
    content.sequence = number_of(value);
  }
}

/// Programs with access to the store can write entries that `publish` would refuse. Handlers rely
/// on these checks.
void check_content(const event& event, bool has_version) {
  if (!has_version) refuse_entry("it does not have a version");
  if (!is_uuid(event.id)) refuse_entry("its id is not a UUID");
  if (event.type.empty()) refuse_entry("it does not have a type");
  const bool consistent = event.payload_ref.empty()
                              ? event.payload_sha256.empty() && event.payload_size == 0
                              : event.payload.empty();
  if (!consistent) refuse_entry("its payload fields contradict each other");
  try {
    check_fields(event);
  } catch (const error& problem) {
    refuse_entry(problem.what());
  }
}

}  // namespace

void append_json_text(std::string& out, std::string_view text) {
  out += '"';
  std::size_t unescaped = 0;  // begin of the characters that are copied unchanged
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text.substr(unescaped, i - unescaped));
    unescaped = i + 1;
    if (c >= 0x20) {
      out += '\\';
      out += static_cast<char>(c);
    } else {
      out += "\\u00";
      append_hex(out, text.substr(i, 1));
    }
  }
  out.append(text.substr(unescaped));
  out += '"';
}

std::string entry_body(const event& event) {
  std::string body;
  body.reserve(event.payload.size() + event.key.size() + 160);
  body += "\"type\":";
  append_json_text(body, event.type);
  append_field(body, "key", event.key);
  append_field(body, "aggregateType", event.aggregate_type);
  append_field(body, "aggregateId", event.aggregate_id);
  append_field(body, "schema", event.schema);
  append_field(body, "contentType", event.content_type);
  if (event.time_to_live.count() > 0) {
    body += ",\"timeToLive\":";
    body += std::to_string(event.time_to_live.count());
  }
  if (!event.headers.empty()) {
    body += ",\"headers\":{";
    bool first = true;
    for (const auto& [name, value] : event.headers) {
      if (!first) body += ',';
      first = false;
      append_json_text(body, name);
      body += ':';
      append_json_text(body, value);
    }
    body += '}';
  }
  append_payload(body, event);
  return body;
}

std::string entry_text(std::string_view id, std::string_view body, std::int64_t created_ms,
                       std::int64_t sequence) {
  std::string text = R"({"v":1,"id":")";
  text.reserve(body.size() + 100);
  text += id;
  text += "\",";
  text += body;
  text += ",\"createdAt\":";
  text += std::to_string(created_ms);
  text += ",\"seq\":";
  text += std::to_string(sequence);
  text += '}';
  return text;
}

entry_content read_entry(std::string_view text) {
  thread_local json::parser parser(largest_json);
  thread_local std::string padded;
  padded.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  padded.assign(text);
  entry_content content;
  content.event.content_type.clear();
  bool has_version = false;
  json::document document;
  if (parser.iterate(padded.data(), padded.size(), padded.capacity()).get(document) !=
      simdjson::SUCCESS)
    refuse_entry("it is not JSON");
  json::object object;
  if (document.get_object().get(object) != simdjson::SUCCESS) refuse_entry("it is not an object");
  for (auto result : object) {
    json::field field;
    if (std::move(result).get(field) != simdjson::SUCCESS) refuse_entry("it is not JSON");
    const auto name = value_or_refuse(field.unescaped_key(), "a field does not have a name");
    read_field(name, field.value(), content, has_version);
  }
  const char* rest = nullptr;
  if (document.current_location().get(rest) == simdjson::SUCCESS)
    refuse_entry("there is text after it");
  check_content(content.event, has_version);
  // Do not keep the memory of one huge entry.
  if (padded.capacity() > (std::size_t{1} << 20U)) std::string().swap(padded);
  return content;
}

entry_content read_or_explain(std::string_view text, std::string_view id,
                              std::optional<std::string_view> key) {
  try {
    auto content = read_entry(text);
    // Events are settled by id and key. With those of another event the settlement would be lost,
    // and the event would be delivered again and again.
    if (content.event.id != id || (key && content.event.key != *key))
      refuse_entry("it is the entry of another event");
    return content;
  } catch (const error& problem) {
    entry_content content;
    content.event.id = id;
    content.event.key = key.value_or(std::string_view());
    content.problem = std::string("its entry cannot be read: ") + problem.what();
    return content;
  }
}

entry_content read_ticket(std::string_view body, std::string_view key) {
  constexpr std::string_view no_id = "00000000-0000-0000-0000-000000000000";
  auto content = read_or_explain(entry_text(no_id, body, 0, 0), no_id, std::nullopt);
  if (!content.problem.empty()) {
    content.event.id.clear();
    content.event.key = key;
  }
  return content;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
