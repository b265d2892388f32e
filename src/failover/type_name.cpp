#include "failover/type_name.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <typeinfo>

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

bool is_identifier(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// The element type of `std::vector<...>`; empty for other types.
std::string_view element_of(std::string_view printed) {
  for (const std::string_view prefix : {"std::vector<", "std::__1::vector<"}) {
    if (!printed.starts_with(prefix) || !printed.ends_with('>')) continue;
    printed.remove_prefix(prefix.size());
    printed.remove_suffix(1);
    int depth = 0;
    for (std::size_t i = 0; i < printed.size(); ++i) {
      if (printed[i] == '<') ++depth;
      else if (printed[i] == '>') --depth;
      else if (printed[i] == ',' && depth == 0) return printed.substr(0, i);
    }
    return printed;
  }
  return {};
}

}  // namespace

std::string default_class_name(std::string_view printed) {
  if (printed.starts_with("std::basic_string<char") ||
      printed.starts_with("std::__cxx11::basic_string<char") || printed == "std::string")
    return "text";
  if (const auto element = element_of(printed); !element.empty()) {
    if (element == "std::byte") return "bytes";
    const auto named = default_class_name(element);
    return named.empty() ? named : named + "[]";
  }
  std::string name;
  int depth = 0;  // of brackets, which contain the signature of an enclosing function
  std::string_view rest = printed;
  while (!rest.empty()) {
    std::size_t end = 0;
    for (depth = 0; end < rest.size(); ++end) {
      const char c = rest[end];
      if (c == '(' || c == '{' || c == '<') ++depth;
      else if (c == ')' || c == '}' || c == '>') --depth;
      else if (c == ':' && depth == 0) break;
    }
    const auto piece = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), end + 2));
    const bool scope_only = piece.find_first_of("({") != std::string_view::npos;
    if (scope_only && !rest.empty()) {
      name.clear();  // a local type: omit the scope of its function
      continue;
    }
    if (!is_identifier(piece)) {
      // Built-in types with several words, such as `unsigned int`.
      if (name.empty() && rest.empty() && std::all_of(piece.begin(), piece.end(), [](char c) {
            return (c >= 'a' && c <= 'z') || c == ' ';
          })) {
        std::string joined(piece);
        std::replace(joined.begin(), joined.end(), ' ', '_');
        return joined;
      }
      return {};
    }
    if (!name.empty()) name += '.';
    name += piece;
  }
  return name;
}

std::string exception_type(const std::exception_ptr& thrown) {
  if (!thrown) return {};
  const std::type_info* type = thrown.__cxa_exception_type();
  if (type == nullptr) return "unknown";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), std::free);
  std::string name = status == 0 && demangled ? demangled.get() : type->name();
  constexpr std::string_view versioned = "holdfast::v";
  if (name.starts_with(versioned)) {
    const auto end = name.find("::", versioned.size());
    if (end != std::string::npos) name.erase(8, end - 8);  // "holdfast" has 8 letters
  }
  return name;
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
