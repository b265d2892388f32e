#include <holdfast/error.hpp>

#include "base/base64.hpp"
#include "base/uuid.hpp"
#include "outbox/checks.hpp"
#include "outbox/entry.hpp"

#include <simdjson.h>

#include <cstddef>

namespace HOLDFAST_NAMESPACE::outboxes {
namespace {

namespace json = simdjson::ondemand;

constexpr std::int64_t last_moment = 253'402'300'799'999;  // of the year 9999, in milliseconds

[[noreturn]] void refuse_entry(std::string_view why) {
  throw error(errc::malformed, "what the outbox keeps is no entry: " + std::string(why));
}

template <class T>
T checked(simdjson::simdjson_result<T> found, std::string_view what) {
  T value{};
  if (std::move(found).get(value) != simdjson::SUCCESS) refuse_entry(what);
  return value;
}

std::string text_of(json::value& value) { return std::string(checked(value.get_string(), "a text is missing")); }

std::int64_t number_of(json::value& value) {
  const auto number = checked(value.get_int64(), "a number is missing");
  if (number < 0) refuse_entry("a number is negative");
  return number;
}

/// The bytes of a payload that is JSON, as they were given.
std::string document_of(json::value& value) {
  std::string_view raw;
  const auto kind = checked(value.type(), "its payload is cut off");
  if (kind == json::json_type::object) {
    auto object = checked(value.get_object(), "its payload is broken");
    raw = checked(object.raw_json(), "its payload is broken");
  } else if (kind == json::json_type::array) {
    auto array = checked(value.get_array(), "its payload is broken");
    raw = checked(array.raw_json(), "its payload is broken");
  } else {
    refuse_entry("its payload is neither object nor list");
  }
  while (!raw.empty() && raw.back() != '}' && raw.back() != ']') raw.remove_suffix(1);
  // Kept as text by `publish`, whatever its content type.
  if (nests_too_deep(raw)) refuse_entry("the payload of an event nests deeper than 1024");
  return std::string(raw);
}

std::string bytes_of(json::value& value) {
  const auto text = checked(value.get_string(), "its payload is no text");
  const auto size = decoded_base64_size(text);
  if (!size) refuse_entry("its payload is not Base64");
  std::string bytes(*size, '\0');
  if (!decode_base64(text, reinterpret_cast<std::byte*>(bytes.data()))) refuse_entry("its payload is not Base64");
  return bytes;
}

void read_headers(json::value& value, event& into) {
  auto object = checked(value.get_object(), "its headers are no object");
  for (auto found : object) {
    json::field field;
    if (std::move(found).get(field) != simdjson::SUCCESS) refuse_entry("its headers are broken");
    std::string name(checked(field.unescaped_key(), "a header has no name"));
    into.headers.insert_or_assign(std::move(name), text_of(field.value()));
  }
}

void read_field(std::string_view name, json::value& value, entry_content& into, bool& versioned) {
  auto& what = into.what;
  if (name == "v") {
    if (number_of(value) != entry_version) {
      throw error(errc::unsupported_type, "the outbox keeps an entry of another version than 1; use a newer Holdfast");
    }
    versioned = true;
  } else if (name == "id") {
    what.id = text_of(value);
  } else if (name == "type") {
    what.type = text_of(value);
  } else if (name == "key") {
    what.key = text_of(value);
  } else if (name == "aggregateType") {
    what.aggregate_type = text_of(value);
  } else if (name == "aggregateId") {
    what.aggregate_id = text_of(value);
  } else if (name == "schema") {
    what.schema = text_of(value);
  } else if (name == "contentType") {
    what.content_type = text_of(value);
  } else if (name == "timeToLive") {
    what.time_to_live = std::chrono::milliseconds(number_of(value));
  } else if (name == "headers") {
    read_headers(value, what);
  } else if (name == "payload") {
    what.payload = document_of(value);
  } else if (name == "payloadText") {
    what.payload = text_of(value);
  } else if (name == "payloadBase64") {
    what.payload = bytes_of(value);
  } else if (name == "payloadRef") {
    what.payload_ref = text_of(value);
  } else if (name == "sha256") {
    what.payload_sha256 = text_of(value);
  } else if (name == "size") {
    what.payload_size = static_cast<std::uint64_t>(number_of(value));
  } else if (name == "createdAt") {
    into.created_ms = number_of(value);
    if (into.created_ms > last_moment) refuse_entry("its time is after the year 9999");
  } else if (name == "seq") {
    into.sequence = number_of(value);
  }
}

}  // namespace

entry_content read_entry(std::string_view text) {
  thread_local json::parser parser(std::size_t{64} << 20U);
  thread_local std::string padded;
  padded.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  padded.assign(text);
  entry_content result;
  result.what.content_type.clear();
  bool versioned = false;
  json::document document;
  if (parser.iterate(padded.data(), padded.size(), padded.capacity()).get(document) != simdjson::SUCCESS) refuse_entry("it is not JSON");
  json::object object;
  if (document.get_object().get(object) != simdjson::SUCCESS) refuse_entry("it is no object");
  for (auto found : object) {
    json::field field;
    if (std::move(found).get(field) != simdjson::SUCCESS) refuse_entry("it is not JSON");
    const auto name = checked(field.unescaped_key(), "a field has no name");
    read_field(name, field.value(), result, versioned);
  }
  const char* rest = nullptr;
  if (document.current_location().get(rest) == simdjson::SUCCESS) refuse_entry("something follows it");
  if (!versioned) refuse_entry("it has no version");
  if (!is_uuid(result.what.id)) refuse_entry("its id is no UUID");
  if (result.what.type.empty()) refuse_entry("it has no type");
  const auto& what = result.what;
  if (what.payload_ref.empty() ? !what.payload_sha256.empty() || what.payload_size != 0 : !what.payload.empty()) {
    refuse_entry("its payload is neither here nor elsewhere");
  }
  // Who can write to the store can write an entry that the outbox would refuse to publish. Handlers rely on those checks.
  try {
    check_fields(what);
  } catch (const error& problem) {
    refuse_entry(problem.what());
  }
  // A capacity that one huge entry made is not kept.
  if (padded.capacity() > (std::size_t{1} << 20U)) std::string().swap(padded);
  return result;
}

entry_content read_or_explain(std::string_view text, std::string_view id, std::optional<std::string_view> key) {
  try {
    auto content = read_entry(text);
    // An outcome is settled by id and key: with those of another event it would be lost, and the event delivered again and again.
    if (content.what.id != id || (key && content.what.key != *key)) refuse_entry("it is the entry of another event");
    return content;
  } catch (const error& problem) {
    entry_content instead;
    instead.what.id = id;
    instead.what.key = key.value_or(std::string_view());
    instead.problem = unreadable(problem);
    return instead;
  }
}

entry_content read_ticket(std::string_view body, std::string_view key) {
  constexpr std::string_view no_id = "00000000-0000-0000-0000-000000000000";
  auto content = read_or_explain(entry_text(no_id, body, 0, 0), no_id, std::nullopt);
  if (!content.problem.empty()) {
    content.what.id.clear();
    content.what.key = key;
  }
  return content;
}

}  // namespace HOLDFAST_NAMESPACE::outboxes
