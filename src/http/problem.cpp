#include "http/problem.hpp"

#include "base/utf8.hpp"
#include "http/writer.hpp"
#include "key/json_string.hpp"

namespace HOLDFAST_NAMESPACE::detail::http {

namespace {

void append_text_member(std::string& json, std::string_view name, std::string_view text) {
  if (text.empty()) return;
  if (json.size() > 1) json += ',';
  key::append_json_string(json, name);
  json += ':';
  key::append_json_string(json, replace_ill_formed(text));
}

}  // namespace

std::string to_json(const problem& details) {
  std::string json = "{";
  append_text_member(json, "type", details.type);
  append_text_member(json, "title",
                     details.title.empty() ? reason_of(details.status) : details.title);
  if (json.size() > 1) json += ',';
  json += "\"status\":" + std::to_string(details.status);
  append_text_member(json, "detail", details.detail);
  append_text_member(json, "instance", details.instance);
  for (const auto& [name, value] : details.members) {
    json += ',';
    key::append_json_string(json, name);
    json += ':';
    json += value;
  }
  json += '}';
  return json;
}

}  // namespace HOLDFAST_NAMESPACE::detail::http
