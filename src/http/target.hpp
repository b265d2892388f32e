#pragma once

/// \file
/// The path and query of a request target, normalised once, so that the router, the key of an
/// answer and an upstream see the same text.

#include <holdfast/version.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::http {

/// A normalised target.
/// Thread-safety: immutable.
class target {
 public:
  /// Reads a target in origin form (`/path?query`) or absolute form. Normalises it as RFC 3986,
  /// section 6.2.2, says: percent-encoded unreserved characters are decoded, the other encodings
  /// get upper-case digits, and dot segments are removed. Returns nothing if the target could mean
  /// something else to another program: `%2F`, `%5C`, an encoded control character or a character
  /// that a path cannot have; `..` above the root; an ill-formed encoding; `%00` in the query.
  [[nodiscard]] static std::optional<target> parse(std::string_view text);

  /// Begins with a slash.
  [[nodiscard]] std::string_view path() const noexcept {
    return std::string_view(text_).substr(0, path_size_);
  }
  /// Without the question mark.
  [[nodiscard]] std::string_view query() const noexcept {
    return has_query() ? std::string_view(text_).substr(path_size_ + 1) : std::string_view{};
  }
  [[nodiscard]] bool has_query() const noexcept { return text_.size() > path_size_; }
  /// Path and query.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_{};
  std::size_t path_size_ = 0;
};

/// Decodes percent-encoded text, such as a segment of a path or a value of a query. Returns nothing
/// if an encoding is ill-formed.
[[nodiscard]] std::optional<std::string> percent_decode(std::string_view text);

/// Calls `visit(name, value)` for each parameter of a query, percent-encoded as they are.
template <class Visitor>
void for_each_parameter(std::string_view query, Visitor visit) {
  while (!query.empty()) {
    const auto parameter = query.substr(0, query.find('&'));
    const auto equals = parameter.find('=');
    if (!parameter.empty())
      visit(parameter.substr(0, equals),
            equals == std::string_view::npos ? std::string_view{} : parameter.substr(equals + 1));
    query.remove_prefix(parameter.size() == query.size() ? query.size() : parameter.size() + 1);
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::http
