#pragma once

/// \file
/// The name of a function as text, at compile time: `function_name<&app::get_user>` is module `app`, qualname `get_user`,
/// the same with every supported compiler.

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

/// What the compiler prints for the template argument: `app::get_user` (gcc) or `&app::get_user` (clang).
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

/// Only identifiers between `::` are the same for every compiler; template arguments, lambdas and anonymous namespaces are not.
consteval bool is_plain_name(std::string_view name) {
  if (name.empty()) return false;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ':';
    if (!plain) return false;
  }
  return true;
}

template <auto Function>
struct dotted_name {
  static_assert(std::is_member_function_pointer_v<decltype(Function)> ||
                    (std::is_pointer_v<decltype(Function)> && std::is_function_v<std::remove_pointer_t<decltype(Function)>>),
                "holdfast: only a function has a name; write of<&app::get_user>(...)");
  static constexpr std::string_view printed = printed_function<Function>();
  static_assert(is_plain_name(printed),
                "holdfast: this function has no name that every compiler prints alike (a lambda, a template, or in an anonymous "
                "namespace); give module and qualname explicitly");

  // `a::b::f` without its second colons, as `a.b.f`.
  static constexpr std::size_t length = [] {
    std::size_t n = 0;
    for (std::size_t i = 0; i < printed.size(); ++i) n += (printed[i] == ':' && i + 1 < printed.size() && printed[i + 1] == ':') ? 0 : 1;
    return n;
  }();
  static constexpr std::array<char, length> text = [] {
    std::array<char, length> out{};
    std::size_t n = 0;
    for (std::size_t i = 0; i < printed.size(); ++i) {
      if (printed[i] == ':' && i + 1 < printed.size() && printed[i + 1] == ':') continue;
      out[n++] = printed[i] == ':' ? '.' : printed[i];
    }
    return out;
  }();
};

}  // namespace detail

struct function_names {
  std::string_view module;    ///< the enclosing namespaces and classes, joined with dots; `__main__` for a global function
  std::string_view qualname;  ///< the function itself
};

template <auto Function>
inline constexpr function_names function_name = [] {
  const std::string_view all(detail::dotted_name<Function>::text.data(), detail::dotted_name<Function>::length);
  const auto dot = all.rfind('.');
  if (dot == std::string_view::npos) return function_names{"__main__", all};
  return function_names{all.substr(0, dot), all.substr(dot + 1)};
}();

}  // namespace HOLDFAST_NAMESPACE::key
