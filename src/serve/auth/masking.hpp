#pragma once

/// \file
/// Hides personal data and secrets where payloads and URLs are shown.

#include <holdfast/version.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// What is shown instead of a value.
inline constexpr std::string_view mask_text = "***";

/// Whether the value of a member of this name is hidden: password, token, secret, iban, card, pin
/// and similar, in any case and as a part of a name: `userPassword`, `credit_card`, `apiKey`.
[[nodiscard]] bool is_sensitive_name(std::string_view name);

/// The JSON with `"***"` for each member whose name is sensitive, at any depth. Nothing if the text
/// is not JSON: then it must not be shown.
[[nodiscard]] std::optional<std::string> mask_json(std::string_view json);

/// The URL or target with `***` for the values of its query, its fragment and its password. Names
/// stay.
[[nodiscard]] std::string mask_url(std::string_view url);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
