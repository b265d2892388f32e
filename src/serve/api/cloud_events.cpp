#include "serve/api/cloud_events.hpp"

#include <holdfast/error.hpp>

#include "http/syntax.hpp"
#include "http/target.hpp"
#include "serve/api/event_reader.hpp"
#include "serve/api/json_slices.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

[[noreturn]] void refuse_attribute(std::string path, const std::string& reason) {
  throw error(errc::invalid_argument, reason, {.path = std::move(path)});
}

bool is_attribute_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  });
}

/// Attributes of one event, from either mode.
struct attributes {
  const event_ids& ids;
  event target{};
  std::string version{};
  std::string id{};
  std::string source{};

  /// `place` is the name as the sender wrote it.
  void set(std::string_view name, std::string value, const std::string& place) {
    if (name == "specversion") version = std::move(value);
    else if (name == "id") id = std::move(value);
    else if (name == "type") target.type = std::move(value);
    else if (name == "partitionkey") target.key = std::move(value);
    else if (name == "datacontenttype") target.content_type = std::move(value);
    else if (name == "dataschema") target.schema = std::move(value);
    else if (name == "subject") target.aggregate_id = std::move(value);
    else if (!is_attribute_name(name))
      refuse_attribute(place, "is not a name of an attribute: only a-z and 0-9 are allowed");
    else {
      if (name == "source") source = value;
      target.headers.insert_or_assign(std::string(name), std::move(value));
    }
  }

  /// `prefix` is that of the names, for messages.
  event finish(const std::string& prefix) {
    if (version != "1.0")
      refuse_attribute(prefix + "specversion",
                       version.empty() ? "is required" : "must be 1.0, the version we know");
    if (id.empty()) refuse_attribute(prefix + "id", "is required");
    if (source.empty()) refuse_attribute(prefix + "source", "is required");
    if (target.type.empty()) refuse_attribute(prefix + "type", "is required");
    target.id = ids.from_cloud_event(source, id);
    // The receiver gets the id that the sender chose.
    if (!normalized_uuid(id)) target.headers.insert_or_assign("id", std::move(id));
    return std::move(target);
  }
};

/// An attribute is a text, an integer or a Boolean. `slice` is its text in the request.
std::string attribute_text(json_object& object, const std::string& name, std::string_view slice) {
  if (slice.starts_with('"')) {
    if (object.has(name)) return object.text(name).value_or("");
    refuse_attribute(name, "is not a name of an attribute: only a-z and 0-9 are allowed");
  }
  if (slice.starts_with('{') || slice.starts_with('['))
    refuse_attribute(name, "must be a text, an integer or a Boolean");
  return slice == "null" ? std::string() : std::string(slice);
}

}  // namespace

event read_cloud_event(json_object& object, std::string_view source_text, const event_ids& ids) {
  attributes result{.ids = ids};
  for (const auto& member : member_slices(source_text)) {
    if (member.name == "data" || member.name == "data_base64") continue;
    const std::string name(member.name);
    auto value = attribute_text(object, name, member.value);
    if (!value.empty()) result.set(name, std::move(value), name);
  }
  read_payload(object, source_text, "data", "data_base64", result.target);
  return result.finish("");
}

bool is_binary_cloud_event(const http::fields& fields) noexcept {
  return fields.find("ce-specversion").has_value() || fields.find("ce-type").has_value();
}

event read_binary_cloud_event(const http::fields& fields, std::string content,
                              const event_ids& ids) {
  attributes result{.ids = ids};
  result.target.content_type.clear();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto [name, value] = fields[i];
    if (name.size() < 4 || !http::equals_ignoring_case(name.substr(0, 3), "ce-")) continue;
    const std::string place(name);
    std::string attribute(name.substr(3));
    std::ranges::transform(attribute, attribute.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    if (fields.count(name) > 1) refuse_attribute(place, "occurs twice; send it once");
    auto text = http::percent_decode(value);
    if (!text) refuse_attribute(place, "has an ill-formed percent-encoding");
    result.set(attribute, *std::move(text), place);
  }
  if (const auto type = fields.find("Content-Type")) result.target.content_type = *type;
  result.target.payload = std::move(content);
  return result.finish("ce-");
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
