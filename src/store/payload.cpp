#include <holdfast/payload.hpp>
#include <holdfast/store.hpp>

#include "base/utf8.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

[[noreturn]] void fail_class(errc code, const std::string& message) {
  throw error(code, message, {.path = "payload class"});
}

void check_class_name(std::string_view name) {
  const auto fail = [](errc code, const std::string& reason) {
    fail_class(code, "the payload class " + reason);
  };
  if (name.empty()) fail(errc::invalid_argument, "has no name");
  if (!detail::is_utf8(name))
    fail(errc::ill_formed_text, "has a name that is not well-formed UTF-8");
  if (std::any_of(name.begin(), name.end(), [](unsigned char c) { return c <= 0x20 || c == 0x7f; }))
    fail(errc::invalid_argument, "has a space or a control character in its name");
  const auto length = detail::count_code_points(name);
  if (length > max_class_length)
    fail(errc::too_large, "has a name of " + std::to_string(length) +
                              " characters; the table holds " + std::to_string(max_class_length));
}

/// Makes a class name from a row printable and short enough for a message.
std::string printable(std::string_view name) {
  std::string result;
  for (const char c : name.substr(0, 80)) result.push_back(c >= 0x20 && c < 0x7f ? c : '?');
  if (name.size() > 80) result += "...";
  return result;
}

std::string list_of(const std::string& element) { return element + "[]"; }

[[noreturn]] void fail_unknown_type(std::type_index type) {
  fail_class(errc::not_found,
             "the type " + printable(type.name()) +
                 " has no payload class; register it: registry.add<type>(\"its.name\")");
}

}  // namespace

void payload_allowlist::allow(std::string name_or_package) {
  check_class_name(name_or_package);
  if (name_or_package.ends_with('.') || name_or_package.ends_with('*')) {
    fail_class(errc::invalid_argument,
               "write an allowed package without a dot or star at its end: com.acme");
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
  for (auto dot = payload_class.find('.'); dot != std::string_view::npos;
       dot = payload_class.find('.', dot + 1)) {
    if (packages_.contains(payload_class.substr(0, dot))) return true;
  }
  return false;
}

void payload_allowlist::check(std::string_view payload_class) const {
  if (allows(payload_class)) return;
  if (payload_class.empty()) {
    fail_class(
        errc::permission,
        "the stored payload has no payload class and is not decoded; write it again with its "
        "payload class");
  }
  fail_class(errc::permission,
             "the payload class '" + printable(payload_class) +
                 "' is not allowed here and is not decoded; if you trust it, register it or allow "
                 "it by name or package");
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

void payload_registry::add_type(std::type_index type, std::type_index element,
                                std::vector<std::string> names) {
  const bool list = element != typeid(void);
  if (list && !by_type_.contains(element))
    fail_class(errc::invalid_argument, "register the elements before the list '" +
                                           printable(names.front()) +
                                           "': the allowlist also needs their name");
  if (by_type_.contains(type))
    fail_class(errc::duplicate, "this type is already registered as '" + by_type_.at(type).front() +
                                    "'; add all of its names at once");
  for (const auto& name : names) {
    check_class_name(name);
    const auto used = used_names_.find(name);
    if (used != used_names_.end() && !(list && used->second))
      fail_class(errc::duplicate,
                 "the payload class '" + printable(name) + "' is used by another type");
  }
  auto used_names = used_names_;  // a copy: an exception must not leave half of the names
  for (const auto& name : names) used_names.emplace(name, list);
  by_type_.emplace(type, std::move(names));
  used_names_ = std::move(used_names);
}

std::string payload_registry::written_name(std::type_index type, std::type_index element) const {
  if (const auto it = by_type_.find(type); it != by_type_.end()) return it->second.front();
  if (const auto it = by_type_.find(element); it != by_type_.end())
    return list_of(it->second.front());
  fail_unknown_type(type);
}

payload_allowlist payload_registry::readable_names(std::type_index type,
                                                   std::type_index element) const {
  payload_allowlist result = extra_allowed_;
  if (const auto it = by_type_.find(type); it != by_type_.end()) {
    for (const auto& name : it->second) result.allow_exactly(name);
  } else if (const auto element_it = by_type_.find(element); element_it != by_type_.end()) {
    for (const auto& name : element_it->second) result.allow_exactly(list_of(name));
  } else {
    fail_unknown_type(type);
  }
  return result;
}

payload_allowlist payload_registry::allowlist() const {
  payload_allowlist result = extra_allowed_;
  for (const auto& [type, names] : by_type_) {
    for (const auto& name : names) result.allow_exactly(name);
  }
  return result;
}

void payload_registry::add_java_list_type(std::type_index type, std::type_index element) {
  add_type(type, element,
           {"java.util.ArrayList", "java.util.LinkedList", "java.util.Arrays$ArrayList",
            "java.util.ImmutableCollections$ListN", "java.util.ImmutableCollections$List12",
            "java.util.ImmutableCollections$SubList", "java.util.Collections$EmptyList",
            "java.util.Collections$SingletonList", "java.util.Collections$UnmodifiableList",
            "java.util.Collections$UnmodifiableRandomAccessList"});
}

}  // namespace HOLDFAST_NAMESPACE
