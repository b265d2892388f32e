#pragma once

/// \file
/// The text of tokens and other secrets: how they are made, hashed and compared.
///
///     hf_k3m9x2pa_pYx...            55 characters
///        id       256 random bits   in Base64 for URLs, without padding
///
/// Only the SHA-256 of the whole text is kept. A fast hash is enough, because a secret of 256
/// random bits cannot be guessed.

#include <holdfast/version.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

using secret_digest = std::array<unsigned char, 32>;

inline constexpr std::size_t token_id_size = 8;
/// Characters of 256 random bits.
inline constexpr std::size_t secret_size = 43;

[[nodiscard]] secret_digest sha256(std::string_view text) noexcept;
/// Takes the same time for any two digests.
[[nodiscard]] bool equal_in_constant_time(const secret_digest& first,
                                          const secret_digest& second) noexcept;

/// Returns 256 random bits as 43 characters. Throws errc::unavailable if the system has none.
[[nodiscard]] std::string random_secret();

struct token_text {
  std::string id;
  /// The whole token, with its id.
  std::string secret;
};
/// Throws errc::unavailable if the system has no random numbers.
[[nodiscard]] token_text make_token_text();

/// Returns the id of a token, or nothing if the text does not have the form of a token.
[[nodiscard]] std::optional<std::string_view> token_id_of(std::string_view text) noexcept;
/// Whether the text has the form of an id.
[[nodiscard]] bool is_token_id(std::string_view text) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::serve
