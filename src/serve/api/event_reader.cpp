#include "serve/api/event_reader.hpp"

#include <holdfast/error.hpp>

#include "base/base64.hpp"
#include "serve/api/event_ids.hpp"
#include "serve/api/json_slices.hpp"

#include <span>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

std::string decode_payload(std::string_view text, std::string_view member) {
  std::string bytes(decoded_base64_size(text).value_or(0), '\0');
  if (!decoded_base64_size(text) ||
      !decode_base64(text, std::as_writable_bytes(std::span(bytes)).data()))
    throw error(errc::invalid_argument, "is not Base64 of RFC 4648 with padding",
                {.path = std::string(member)});
  return bytes;
}

void read_headers(json_object& object, event& target) {
  auto headers = object.object("headers");
  if (!headers) return;
  for (const auto& name : headers->names()) {
    auto value = headers->text(name);
    if (value) target.headers.emplace(name, *std::move(value));
  }
}

}  // namespace

void read_payload(json_object& object, std::string_view source, std::string_view member,
                  std::string_view base64_member, event& target) {
  if (auto text = object.text(base64_member)) {
    if (object.has(member))
      throw error(errc::invalid_argument,
                  "excludes " + std::string(base64_member) + "; send one of them",
                  {.path = std::string(member)});
    target.payload = decode_payload(*text, base64_member);
    return;
  }
  if (!object.has(member)) return;
  if (!target.content_type.empty() && !is_json_type(target.content_type)) {
    target.payload = object.text(member).value_or(std::string());
    return;
  }
  object.skip(member);
  const auto slice = member_slice(source, member);
  if (slice == "null") return;
  // An escaped name is found by the parser only.
  target.payload = slice.empty() ? object.raw(member).value_or("") : std::string(slice);
}

event read_event(json_object& object, std::string_view source) {
  event result;
  result.type = object.required_text("type");
  result.key = object.text("key").value_or("");
  if (auto id = object.text("id")) result.id = normalized_uuid(*id).value_or(*id);
  if (auto type = object.text("contentType")) result.content_type = *std::move(type);
  read_payload(object, source, "payload", "payloadBase64", result);
  result.delay = object.duration("delay").value_or(result.delay);
  result.time_to_live = object.duration("timeToLive").value_or(result.time_to_live);
  read_headers(object, result);
  result.schema = object.text("schema").value_or("");
  result.aggregate_type = object.text("aggregateType").value_or("");
  result.aggregate_id = object.text("aggregateId").value_or("");
  object.finish();
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
