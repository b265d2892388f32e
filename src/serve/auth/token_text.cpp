#include "serve/auth/token_text.hpp"

#include "base/aes_gcm.hpp"
#include "base/base64.hpp"
#include "http/syntax.hpp"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cstdint>
#include <span>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::string_view token_prefix = "hf_";
constexpr std::size_t token_size = token_prefix.size() + token_id_size + 1 + secret_size;
/// Lower case only, because some databases ignore case.
constexpr std::string_view id_alphabet = "abcdefghijkmnpqrstuvwxyz23456789";

bool is_secret_character(char c) noexcept {
  return http::is_alpha(c) || http::is_digit(c) || c == '-' || c == '_';
}

std::string random_id() {
  std::array<std::byte, token_id_size> bytes{};
  fill_random(bytes);
  std::string id;
  for (const auto byte : bytes)
    id += id_alphabet[std::to_integer<std::size_t>(byte) % id_alphabet.size()];
  return id;
}

}  // namespace

secret_digest sha256(std::string_view text) noexcept {
  secret_digest digest{};
  ::SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

bool equal_in_constant_time(const secret_digest& first, const secret_digest& second) noexcept {
  return ::CRYPTO_memcmp(first.data(), second.data(), first.size()) == 0;
}

std::string random_secret() {
  std::array<std::byte, 32> bytes{};
  fill_random(bytes);
  std::string text(base64_size(bytes.size()), '\0');
  encode_base64(bytes, text.data());
  wipe(bytes);
  text.resize(secret_size);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

token_text make_token_text() {
  token_text token{.id = random_id(), .secret = std::string(token_prefix)};
  token.secret += token.id + '_' + random_secret();
  return token;
}

bool is_token_id(std::string_view text) noexcept {
  return text.size() == token_id_size && std::ranges::all_of(text, [](char c) {
           return id_alphabet.find(c) != std::string_view::npos;
         });
}

std::optional<std::string_view> token_id_of(std::string_view text) noexcept {
  if (text.size() != token_size || !text.starts_with(token_prefix)) return std::nullopt;
  const auto id = text.substr(token_prefix.size(), token_id_size);
  const auto secret = text.substr(token_size - secret_size);
  if (!is_token_id(id) || text[token_size - secret_size - 1] != '_' ||
      !std::ranges::all_of(secret, is_secret_character))
    return std::nullopt;
  return id;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
