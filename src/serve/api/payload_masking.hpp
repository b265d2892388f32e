#pragma once

/// \file
/// Hides secrets in payloads and headers that are shown to a person.

#include <holdfast/version.hpp>

#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Returns true for names such as `password`, `accessToken`, `client_secret`, `IBAN`,
/// `card_number`, `Authorization`, `Cookie`, `X-Api-Key`.
[[nodiscard]] bool is_secret_name(std::string_view name);

/// Replaces the values of members with secret names by `"***"`, at any depth. The text must be
/// well-formed JSON. Everything else stays byte for byte.
[[nodiscard]] std::string mask_json(std::string_view json);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
