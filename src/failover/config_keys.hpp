#pragma once

#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::config {

/// What may stand behind a key.
enum class kind : std::uint8_t {
  text,
  secret,  ///< a text that is never repeated
  flag,
  count,
  rate,      ///< from 0 to 1
  duration,  ///< `10s`
  expiry,    ///< a duration, months or years, or a policy by its name
  choice,    ///< one of a few words
  names,     ///< a list of texts
  partial,   ///< keep, drop, fail, or a number
  ignored    ///< a key of the Java library that is not needed here: accepted, with a warning that says why
};

/// One key of the file. docs/configuration.md shows this table; a test compares the two.
struct known_key {
  std::string_view name;        ///< `*` stands for the name of a point or a tenant
  kind is = kind::text;         ///< see there
  std::string_view standard{};  ///< what holds without it, as one would write it; empty: nothing
  std::string_view meaning{};   ///< a sentence
  std::string_view choices{};   ///< of kind::choice, in the order of the enumeration: `off, warn, strict`
  std::size_t least = 0;        ///< of kind::count
};

/// A key, or all below it, that the Java library has and that cannot be meant here: refused, with what to use instead.
struct foreign_key {
  std::string_view name;
  std::string_view instead;
};
/// A choice of the Java library that is not one here.
struct foreign_choice {
  std::string_view key;
  std::string_view choice;
  std::string_view instead;
};

[[nodiscard]] HOLDFAST_API std::span<const known_key> known_keys() noexcept;
[[nodiscard]] HOLDFAST_API std::span<const foreign_key> foreign_keys() noexcept;
[[nodiscard]] HOLDFAST_API std::span<const foreign_choice> foreign_choices() noexcept;

using key_path = std::vector<std::string>;

/// The key that a path means, spelled with or without `jdbc`; null when there is none.
[[nodiscard]] HOLDFAST_API const known_key* find_key(const key_path& path) noexcept;
/// Whether there are known keys below it.
[[nodiscard]] HOLDFAST_API bool is_section(const key_path& path) noexcept;
[[nodiscard]] HOLDFAST_API const foreign_key* find_foreign(const key_path& path) noexcept;
/// The known name that looks most like it, with its own names in the places of `*`.
[[nodiscard]] HOLDFAST_API std::string nearest_key(const key_path& path);

/// How many letters must be changed, added or left out.
[[nodiscard]] HOLDFAST_API std::size_t distance(std::string_view a, std::string_view b);
/// With dots between; a name that has some itself is quoted.
[[nodiscard]] HOLDFAST_API std::string dotted(const key_path& path);

}  // namespace HOLDFAST_NAMESPACE::config
