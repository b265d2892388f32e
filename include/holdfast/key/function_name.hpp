#pragma once

/// \file
/// The name of a function as text, at compile time: `function_name<&app::get_user>` has the module
/// `app` and the qualname `get_user`. All supported compilers give the same names.

#include <holdfast/version.hpp>

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace HOLDFAST_NAMESPACE::key {

namespace detail {

template <auto Function>
consteval std::string_view pretty() {
  return __PRETTY_FUNCTION__;
}

/// The template argument as the compiler prints it, without the `&` that clang adds:
/// `app::get_user`.
template <auto Function>
consteval std::string_view printed_function() {
  std::string_view text = pretty<Function>();
  const auto begin = text.find("Function = ");
  text.remove_prefix(begin == std::string_view::npos ? text.size() : begin + 11);
  const auto end = text.find_first_of(";]");
  text = text.substr(0, end);
  if (!text.empty() && text.front() == '&') text.remove_prefix(1);
  return text;
}

/// Compilers agree on identifiers joined by `::`. They print template arguments, lambdas and
/// anonymous namespaces differently.
consteval bool is_plain_name(std::string_view name) {
  if (name.empty()) return false;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == ':';
    if (!plain) return false;
  }
  return true;
}

constexpr bool is_first_colon(std::string_view name, std::size_t i) {
  return name.substr(i, 2) == "::";
}

template <auto Function>
struct dotted_name {
  static_assert(std::is_member_function_pointer_v<decltype(Function)> ||
                    (std::is_pointer_v<decltype(Function)> &&
                     std::is_function_v<std::remove_pointer_t<decltype(Function)>>),
                "holdfast: only a function has a name; write of<&app::get_user>(...)");
  static constexpr std::string_view printed = printed_function<Function>();
  static_assert(is_plain_name(printed),
                "holdfast: this function has no name that every compiler prints alike (a lambda, a "
                "template, or in an anonymous namespace); give module and qualname explicitly");

  // `a::b::f` becomes `a.b.f`: the first colon of each pair is dropped, the second becomes a dot.
  static constexpr std::size_t length = [] {
    std::size_t count = 0;
    for (std::size_t i = 0; i < printed.size(); ++i) count += is_first_colon(printed, i) ? 0 : 1;
    return count;
  }();
  static constexpr std::array<char, length> text = [] {
    std::array<char, length> result{};
    std::size_t count = 0;
    for (std::size_t i = 0; i < printed.size(); ++i) {
      if (!is_first_colon(printed, i)) result[count++] = printed[i] == ':' ? '.' : printed[i];
    }
    return result;
  }();
};

}  // namespace detail

struct function_names {
  /// The enclosing namespaces and classes, joined with dots; `__main__` for a global function.
  std::string_view module;
  /// The name of the function itself.
  std::string_view qualname;
};

template <auto Function>
inline constexpr function_names function_name = [] {
  using name = detail::dotted_name<Function>;
  const std::string_view full(name::text.data(), name::length);
  const auto dot = full.rfind('.');
  if (dot == std::string_view::npos) return function_names{"__main__", full};
  return function_names{full.substr(0, dot), full.substr(dot + 1)};
}();

}  // namespace HOLDFAST_NAMESPACE::key
