#include <holdfast/payload.hpp>
#include <holdfast/store.hpp>

#include "base/utf8.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

constexpr std::string_view path = "payload class";

void check_class_name(std::string_view name) {
  const auto fail = [](errc code, const std::string& why) { throw error(code, "the payload class " + why, {.path = std::string(path)}); };
  if (name.empty()) fail(errc::invalid_argument, "has no name");
  if (!is_utf8(name)) fail(errc::ill_formed_text, "has a name that is not well-formed UTF-8");
  if (std::any_of(name.begin(), name.end(), [](unsigned char c) { return c <= 0x20 || c == 0x7f; }))
    fail(errc::invalid_argument, "has a space or a control character in its name");
  const auto length = count_code_points(name);
  if (length > max_class_length)
    fail(errc::too_large, "has a name of " + std::to_string(length) + " characters; the table holds " + std::to_string(max_class_length));
}

/// A class name from a row, fit for a message: it may be anything, and as long as its column.
std::string shown(std::string_view name) {
  std::string result;
  for (const char c : name.substr(0, 80)) result.push_back(c >= 0x20 && c < 0x7f ? c : '?');
  if (name.size() > 80) result += "...";
  return result;
}

std::string list_of(const std::string& element) { return element + "[]"; }

error unknown_type(std::type_index type) {
  return {errc::not_found,
          "the type " + shown(type.name()) + " has no payload class; register it: registry.add<type>(\"its.name\")",
          {.path = std::string(path)}};
}

}  // namespace

void payload_allowlist::allow(std::string name_or_package) {
  check_class_name(name_or_package);
  if (name_or_package.ends_with('.') || name_or_package.ends_with('*')) {
    throw error(errc::invalid_argument, "an allowed package is written without a dot or star at its end: com.acme",
                {.path = std::string(path)});
  }
  packages_.insert(std::move(name_or_package));
}

void payload_allowlist::allow_exactly(std::string name) {
  check_class_name(name);
  exact_.insert(std::move(name));
}

bool payload_allowlist::allows(std::string_view payload_class) const noexcept {
  if (payload_class.empty()) return false;
  if (exact_.contains(payload_class) || packages_.contains(payload_class)) return true;
  for (auto dot = payload_class.find('.'); dot != std::string_view::npos; dot = payload_class.find('.', dot + 1)) {
    if (packages_.contains(payload_class.substr(0, dot))) return true;
  }
  return false;
}

void payload_allowlist::check(std::string_view payload_class) const {
  if (allows(payload_class)) return;
  if (payload_class.empty()) {
    throw error(errc::permission, "the stored payload does not say what it is, and is not decoded; write it again with its payload class",
                {.path = std::string(path)});
  }
  throw error(errc::permission,
              "the payload class '" + shown(payload_class) +
                  "' is not allowed here, and is not decoded; if you trust it, register it or allow it by name or package",
              {.path = std::string(path)});
}

std::vector<std::string> payload_allowlist::names() const {
  std::vector<std::string> result(exact_.begin(), exact_.end());
  for (const auto& package : packages_) {
    if (!exact_.contains(package)) result.push_back(package);
    result.push_back(package + ".*");
  }
  std::sort(result.begin(), result.end());
  return result;
}

void payload_registry::add_type(std::type_index type, std::type_index element, std::vector<std::string> given) {
  const bool list = element != typeid(void);
  const auto refuse = [](errc code, const std::string& why) { throw error(code, why, {.path = std::string(path)}); };
  if (list && !by_type_.contains(element))
    refuse(errc::invalid_argument,
           "register the elements before the list '" + shown(given.front()) + "': the allowlist wants their name too");
  if (by_type_.contains(type))
    refuse(errc::duplicate, "this type is registered already, as '" + by_type_.at(type).front() + "'; give all of its names at once");
  for (const auto& name : given) {
    check_class_name(name);
    const auto found = taken_.find(name);
    if (found != taken_.end() && !(list && found->second))
      refuse(errc::duplicate, "the payload class '" + shown(name) + "' is that of another type");
  }
  auto taken = taken_;  // so that a failure half-way changes nothing
  for (const auto& name : given) taken.emplace(name, list);
  by_type_.emplace(type, std::move(given));
  taken_ = std::move(taken);
}

std::string payload_registry::written_name(std::type_index type, std::type_index element) const {
  if (const auto found = by_type_.find(type); found != by_type_.end()) return found->second.front();
  if (const auto found = by_type_.find(element); found != by_type_.end()) return list_of(found->second.front());
  throw unknown_type(type);
}

payload_allowlist payload_registry::names_read(std::type_index type, std::type_index element) const {
  payload_allowlist result = more_;
  if (const auto found = by_type_.find(type); found != by_type_.end()) {
    for (const auto& name : found->second) result.allow_exactly(name);
  } else if (const auto of = by_type_.find(element); of != by_type_.end()) {
    for (const auto& name : of->second) result.allow_exactly(list_of(name));
  } else {
    throw unknown_type(type);
  }
  return result;
}

payload_allowlist payload_registry::allowlist() const {
  payload_allowlist result = more_;
  for (const auto& [type, each] : by_type_) {
    for (const auto& name : each) result.allow_exactly(name);
  }
  return result;
}

void payload_registry::add_java_list_type(std::type_index type, std::type_index element) {
  add_type(type, element,
           {"java.util.ArrayList", "java.util.LinkedList", "java.util.Arrays$ArrayList", "java.util.ImmutableCollections$ListN",
            "java.util.ImmutableCollections$List12", "java.util.ImmutableCollections$SubList", "java.util.Collections$EmptyList",
            "java.util.Collections$SingletonList", "java.util.Collections$UnmodifiableList",
            "java.util.Collections$UnmodifiableRandomAccessList"});
}

}  // namespace HOLDFAST_NAMESPACE
