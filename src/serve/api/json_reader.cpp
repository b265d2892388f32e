#include "serve/api/json_reader.hpp"

#include <holdfast/error.hpp>

#include "base/edit_distance.hpp"
#include "serve/api/value_text.hpp"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

/// The parser owns the text of all values.
struct document {
  simdjson::dom::parser parser{};
  element root{};
};

std::shared_ptr<document> parse_document(std::string_view text) {
  auto result = std::make_shared<document>();
  const auto status = result->parser.parse(simdjson::padded_string(text)).get(result->root);
  if (status != simdjson::SUCCESS)
    throw error(errc::malformed,
                std::string("the content is not JSON: ") + simdjson::error_message(status));
  return result;
}

[[noreturn]] void refuse(const std::string& path, const std::string& message) {
  throw error(errc::invalid_argument, message, {.path = path});
}

}  // namespace

struct json_object::state {
  struct member {
    element value{};
    bool read = false;
  };

  state(std::shared_ptr<document> owner, const element& value, std::string place)
      : source(std::move(owner)), path(std::move(place)) {
    simdjson::dom::object content;
    if (value.get_object().get(content) != simdjson::SUCCESS) refuse(path, "must be a JSON object");
    for (const auto& [name, item] : content) {
      if (!members.try_emplace(std::string(name), member{item}).second)
        throw error(errc::malformed, "occurs twice", {.path = path_of(name)});
      order.emplace_back(name);
    }
  }

  [[nodiscard]] std::string path_of(std::string_view name) const {
    return path.empty() ? std::string(name) : path + "." + std::string(name);
  }
  /// Null if the member is missing or null.
  [[nodiscard]] const element* read(std::string_view name) {
    const auto it = members.find(name);
    // A name that was asked for is known, even if it is missing: for the hints of `finish`.
    if (it == members.end()) {
      known_names.emplace_back(name);
      return nullptr;
    }
    it->second.read = true;
    return it->second.value.is_null() ? nullptr : &it->second.value;
  }

  std::shared_ptr<document> source;
  std::string path;
  std::map<std::string, member, std::less<>> members{};
  std::vector<std::string> order{};
  std::vector<std::string> known_names{};
};

json_object::json_object(std::unique_ptr<state> content) noexcept : state_(std::move(content)) {}
json_object::json_object(json_object&&) noexcept = default;
json_object& json_object::operator=(json_object&&) noexcept = default;
json_object::~json_object() = default;

json_object json_object::parse(std::string_view text) {
  auto source = parse_document(text);
  const auto root = source->root;
  if (!root.is_object()) throw error(errc::malformed, "the content must be a JSON object");
  return json_object(std::make_unique<state>(std::move(source), root, ""));
}

std::vector<json_object> json_object::parse_array(std::string_view text) {
  const auto source = parse_document(text);
  simdjson::dom::array content;
  if (source->root.get_array().get(content) != simdjson::SUCCESS)
    throw error(errc::malformed, "the content must be a JSON array");
  std::vector<json_object> result;
  for (const auto item : content)
    result.emplace_back(
        std::make_unique<state>(source, item, "[" + std::to_string(result.size()) + "]"));
  return result;
}

bool json_object::has(std::string_view name) const { return state_->members.contains(name); }

std::optional<std::string> json_object::text(std::string_view name) {
  const auto* value = state_->read(name);
  if (value == nullptr) return std::nullopt;
  std::string_view result;
  if (value->get_string().get(result) != simdjson::SUCCESS)
    refuse(state_->path_of(name), "must be a text");
  return std::string(result);
}

std::string json_object::required_text(std::string_view name) {
  auto value = text(name);
  if (!value) refuse(state_->path_of(name), "is required");
  return *std::move(value);
}

std::optional<std::int64_t> json_object::integer(std::string_view name) {
  const auto* value = state_->read(name);
  if (value == nullptr) return std::nullopt;
  std::int64_t number = 0;
  if (value->type() == element_type::INT64 && value->get_int64().get(number) == simdjson::SUCCESS)
    return number;
  std::string_view digits;
  if (value->get_string().get(digits) == simdjson::SUCCESS && !digits.empty()) {
    const auto [end, status] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (status == std::errc{} && end == digits.data() + digits.size()) return number;
  }
  refuse(state_->path_of(name), "must be a 64-bit integer, or a text with one");
}

std::optional<bool> json_object::boolean(std::string_view name) {
  const auto* value = state_->read(name);
  if (value == nullptr) return std::nullopt;
  bool result = false;
  if (value->get_bool().get(result) != simdjson::SUCCESS)
    refuse(state_->path_of(name), "must be true or false");
  return result;
}

std::optional<std::chrono::milliseconds> json_object::duration(std::string_view name) {
  const auto value = text(name);
  if (!value) return std::nullopt;
  const auto result = parse_duration(*value);
  if (!result) refuse(state_->path_of(name), "must be a duration such as 500ms, 30s, 15m, 24h, 7d");
  return result;
}

std::optional<std::chrono::sys_time<std::chrono::microseconds>> json_object::time(
    std::string_view name) {
  const auto value = text(name);
  if (!value) return std::nullopt;
  const auto result = parse_time(*value);
  if (!result) refuse(state_->path_of(name), "must be a time such as 2026-11-15T23:05:16.120431Z");
  return result;
}

std::optional<std::vector<std::string>> json_object::texts(std::string_view name) {
  const auto* value = state_->read(name);
  if (value == nullptr) return std::nullopt;
  simdjson::dom::array content;
  if (value->get_array().get(content) != simdjson::SUCCESS)
    refuse(state_->path_of(name), "must be an array of texts");
  std::vector<std::string> result;
  for (const auto item : content) {
    std::string_view element_text;
    if (item.get_string().get(element_text) != simdjson::SUCCESS)
      refuse(state_->path_of(name) + "[" + std::to_string(result.size()) + "]", "must be a text");
    result.emplace_back(element_text);
  }
  return result;
}

std::optional<json_object> json_object::object(std::string_view name) {
  const auto* value = state_->read(name);
  if (value == nullptr) return std::nullopt;
  return json_object(std::make_unique<state>(state_->source, *value, state_->path_of(name)));
}

std::optional<std::vector<json_object>> json_object::objects(std::string_view name) {
  const auto* value = state_->read(name);
  if (value == nullptr) return std::nullopt;
  simdjson::dom::array content;
  if (value->get_array().get(content) != simdjson::SUCCESS)
    refuse(state_->path_of(name), "must be an array of objects");
  std::vector<json_object> result;
  for (const auto item : content)
    result.emplace_back(std::make_unique<state>(
        state_->source, item, state_->path_of(name) + "[" + std::to_string(result.size()) + "]"));
  return result;
}

std::optional<std::string> json_object::raw(std::string_view name) {
  const auto* value = state_->read(name);
  if (value == nullptr) return std::nullopt;
  return simdjson::minify(*value);
}

void json_object::skip(std::string_view name) { (void)state_->read(name); }

std::optional<std::vector<std::string>> json_object::raw_elements(std::string_view name) {
  const auto* value = state_->read(name);
  if (value == nullptr) return std::nullopt;
  simdjson::dom::array content;
  if (value->get_array().get(content) != simdjson::SUCCESS)
    refuse(state_->path_of(name), "must be an array");
  std::vector<std::string> result;
  for (const auto item : content) result.push_back(simdjson::minify(item));
  return result;
}

std::vector<std::string> json_object::names() const { return state_->order; }

void json_object::finish() const {
  for (const auto& name : state_->order) {
    if (state_->members.find(name)->second.read) continue;
    std::string message = "is not a member that this request has";
    std::vector<std::string> known_names = state_->known_names;
    for (const auto& [other, value] : state_->members) {
      if (value.read) known_names.push_back(other);
    }
    const auto nearest = std::ranges::min_element(
        known_names, {}, [&](const std::string& other) { return edit_distance(name, other); });
    if (nearest != known_names.end() && edit_distance(name, *nearest) <= 2)
      message += "; did you mean " + *nearest + "?";
    refuse(state_->path_of(name), message);
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
