#pragma once

/// \file
/// The table of keys that a configuration file may have.

#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::failover::config {

enum class value_kind : std::uint8_t {
  text,
  secret,  ///< a text that never appears in a message
  flag,
  count,
  rate,      ///< a number from 0 to 1
  duration,  ///< for example `10s`
  expiry,    ///< a duration, months, years, or `policy:name`
  choice,    ///< one of a few words
  names,     ///< a list of texts
  partial,   ///< what to do with an incomplete answer: keep, drop, fail, or a minimum of parts
  ignored    ///< a key of the Java library without effect: accepted with a warning
};

/// One key. docs/configuration.md shows this table; a test compares the two.
struct known_key {
  std::string_view name;  ///< `*` stands for the name of a point or tenant
  value_kind kind = value_kind::text;
  std::string_view default_value{};  ///< as in a file; empty if there is none
  std::string_view description{};
  /// For value_kind::choice: the words, in the order of the enumeration: `off, warn, strict`.
  std::string_view choices{};
  std::size_t minimum = 0;  ///< for value_kind::count
};

/// A key or section of the Java library that is refused, with a hint for the user.
struct foreign_key {
  std::string_view name;
  std::string_view hint;
};
/// A choice of the Java library that is refused, with a hint for the user.
struct foreign_choice {
  std::string_view key;
  std::string_view choice;
  std::string_view hint;
};

[[nodiscard]] HOLDFAST_API std::span<const known_key> known_keys() noexcept;
[[nodiscard]] HOLDFAST_API std::span<const foreign_choice> foreign_choices() noexcept;

using key_path = std::vector<std::string>;

/// Returns the key of a path, or null. `failover.store.jdbc.x` is a synonym of `failover.store.x`,
/// because the Java library has it there.
[[nodiscard]] HOLDFAST_API const known_key* find_key(const key_path& path) noexcept;
/// Whether known keys begin with the path.
[[nodiscard]] HOLDFAST_API bool is_section(const key_path& path) noexcept;
/// Returns the refused key or section of the Java library at the path, or null.
[[nodiscard]] HOLDFAST_API const foreign_key* find_foreign(const key_path& path) noexcept;
/// The most similar known key, with the names of the path instead of `*`.
[[nodiscard]] HOLDFAST_API std::string nearest_key(const key_path& path);

/// The segments joined by dots; segments that are not bare TOML keys are quoted.
[[nodiscard]] HOLDFAST_API std::string dotted(const key_path& path);

}  // namespace HOLDFAST_NAMESPACE::detail::failover::config
