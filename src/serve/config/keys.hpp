#pragma once

/// \file
/// The table of keys that serve.toml may have, apart from those of [failover].

#include <holdfast/version.hpp>

#include "failover/config/keys.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve::config {

using failover::config::key_path;

enum class value_kind : std::uint8_t {
  text,
  secret,  ///< a text that never appears in a message
  url,     ///< a text that appears without its password
  flag,
  count,
  duration,
  long_duration,  ///< up to 366 days
  choice,
  names  ///< a list of texts, or one text
};

/// One key. docs/serve.md shows this table; a test compares the two.
struct known_key {
  std::string_view name;  ///< `*` stands for the name of a store, an outbox, a route or a client
  value_kind kind = value_kind::text;
  std::string_view default_value{};  ///< as in a file; empty if there is none
  std::string_view description{};
  /// For value_kind::choice: `text, bytes`.
  std::string_view choices{};
  std::size_t minimum = 0;
  std::size_t maximum = ~std::size_t{0};
};

[[nodiscard]] std::span<const known_key> known_keys() noexcept;
/// Null if there is none.
[[nodiscard]] const known_key* find_key(const key_path& path) noexcept;
/// The segment for which the `*` of a key stands; nothing if the key has none.
[[nodiscard]] std::optional<std::size_t> name_position(const known_key& key) noexcept;
/// `stores` for `stores.*.url`.
[[nodiscard]] std::string_view named_section(const known_key& key) noexcept;
/// Whether there are known keys under the path.
[[nodiscard]] bool is_section(const key_path& path) noexcept;
/// The most similar known key, with the names of the path instead of `*`.
[[nodiscard]] std::string nearest_key(const key_path& path);

}  // namespace HOLDFAST_NAMESPACE::detail::serve::config
