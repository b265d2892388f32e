#pragma once

#include <holdfast/version.hpp>

#include "http/cache_control.hpp"
#include "http/fields.hpp"
#include "http/syntax.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

struct response_field {
  std::string name{};
  std::string value{};
  bool operator==(const response_field&) const = default;
};

/// The fields of a response that is kept or passed on. Names are compared without their case.
/// Thread-safety: none.
class response_fields {
 public:
  void add(std::string_view name, std::string_view value) {
    entries_.push_back({std::string(name), std::string(value)});
  }
  /// The first value of this name.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const noexcept {
    const auto it = std::ranges::find_if(entries_, [&](const response_field& entry) {
      return http::equals_ignoring_case(entry.name, name);
    });
    return it == entries_.end() ? std::nullopt : std::optional<std::string_view>(it->value);
  }
  [[nodiscard]] bool has(std::string_view name) const noexcept { return find(name).has_value(); }
  template <class Visitor>
  void for_each(std::string_view name, Visitor visit) const {
    for (const auto& entry : entries_) {
      if (http::equals_ignoring_case(entry.name, name)) visit(std::string_view(entry.value));
    }
  }
  [[nodiscard]] const std::vector<response_field>& entries() const noexcept { return entries_; }
  [[nodiscard]] http::cache_control cache_control() const {
    http::cache_control directives;
    for_each("cache-control", [&](std::string_view value) { directives.add(value); });
    return directives;
  }
  bool operator==(const response_fields&) const = default;

 private:
  std::vector<response_field> entries_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
