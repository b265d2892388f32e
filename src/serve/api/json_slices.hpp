#pragma once

/// \file
/// Cuts JSON into pieces without changing them: a payload must reach its receiver byte for byte,
/// with its numbers as they were written.

#include <holdfast/version.hpp>

#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

// The text of these must be well-formed JSON. Escaped names are not found.

/// The value of a member of an object, or empty text.
[[nodiscard]] std::string_view member_slice(std::string_view object, std::string_view name);
/// All members of an object. Names are without quotes, and escaped as they are written.
struct json_member {
  std::string_view name{};
  std::string_view value{};
};
[[nodiscard]] std::vector<json_member> member_slices(std::string_view object);
/// The elements of an array.
[[nodiscard]] std::vector<std::string_view> element_slices(std::string_view array);
/// The size of the value at the beginning of the text.
[[nodiscard]] std::size_t json_value_size(std::string_view text) noexcept;

/// Returns true if the text is one JSON value.
[[nodiscard]] bool is_json(std::string_view text);
/// Returns true for `application/json`, `text/json; charset=utf-8`, `application/problem+json`.
[[nodiscard]] bool is_json_type(std::string_view content_type);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
