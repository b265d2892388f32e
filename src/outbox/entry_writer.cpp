#include "base/base64.hpp"
#include "base/utf8.hpp"
#include "outbox/entry.hpp"

#include <simdjson.h>

#include <cstddef>
#include <span>
#include <vector>

namespace HOLDFAST_NAMESPACE::outboxes {

void append_json_text(std::string& to, std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  to += '"';
  std::size_t plain = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    to.append(text.substr(plain, i - plain));
    plain = i + 1;
    if (c >= 0x20) {
      to += '\\';
      to += static_cast<char>(c);
    } else {
      to += "\\u00";
      to += digits[c >> 4U];
      to += digits[c & 0x0FU];
    }
  }
  to.append(text.substr(plain));
  to += '"';
}

namespace {

void append_field(std::string& to, std::string_view name, std::string_view text) {
  if (text.empty()) return;
  to += ",\"";
  to += name;
  to += "\":";
  append_json_text(to, text);
}

/// Could it stand in the entry as it is, and be cut out again byte by byte?
bool is_json_document(std::string_view text) {
  if (text.size() < 2) return false;
  const bool object = text.front() == '{' && text.back() == '}';
  const bool list = text.front() == '[' && text.back() == ']';
  if (!object && !list) return false;
  thread_local simdjson::dom::parser parser(std::size_t{64} << 20U);
  simdjson::dom::element root;
  return parser.parse(text.data(), text.size(), true).get(root) == simdjson::SUCCESS;
}

void append_payload(std::string& to, const event& what) {
  if (!what.payload_ref.empty()) {
    append_field(to, "payloadRef", what.payload_ref);
    append_field(to, "sha256", what.payload_sha256);
    to += ",\"size\":";
    to += std::to_string(what.payload_size);
  } else if (is_json_document(what.payload)) {
    to += ",\"payload\":";
    to += what.payload;
  } else if (is_utf8(what.payload)) {
    to += ",\"payloadText\":";
    append_json_text(to, what.payload);
  } else {
    to += R"(,"payloadBase64":")";
    const auto at = to.size();
    to.resize(at + base64_size(what.payload.size()));
    encode_base64(std::as_bytes(std::span(what.payload)), to.data() + at);
    to += '"';
  }
}

}  // namespace

std::string entry_body(const event& what) {
  std::string body;
  body.reserve(what.payload.size() + what.key.size() + 160);
  body += "\"type\":";
  append_json_text(body, what.type);
  append_field(body, "key", what.key);
  append_field(body, "aggregateType", what.aggregate_type);
  append_field(body, "aggregateId", what.aggregate_id);
  append_field(body, "schema", what.schema);
  append_field(body, "contentType", what.content_type);
  if (what.time_to_live.count() > 0) {
    body += ",\"timeToLive\":";
    body += std::to_string(what.time_to_live.count());
  }
  if (!what.headers.empty()) {
    body += ",\"headers\":{";
    bool first = true;
    for (const auto& [name, value] : what.headers) {
      if (!first) body += ',';
      first = false;
      append_json_text(body, name);
      body += ':';
      append_json_text(body, value);
    }
    body += '}';
  }
  append_payload(body, what);
  return body;
}

std::string entry_text(std::string_view id, std::string_view body, std::int64_t created_ms, std::int64_t sequence) {
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

}  // namespace HOLDFAST_NAMESPACE::outboxes
