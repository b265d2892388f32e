#pragma once

/// \file
/// Structured field values (RFC 9651): items, lists, dictionaries and their parameters. Parsing is
/// strict: ill-formed text gives nothing at all, as the RFC requires.

#include <holdfast/version.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::http::structured {

/// A number with at most 12 digits before the point and three after it.
struct decimal {
  std::int64_t thousandths = 0;
  bool operator==(const decimal&) const = default;
};
/// `gzip`, without quotes.
struct token {
  std::string text{};
  bool operator==(const token&) const = default;
};
/// `:aGVsbG8=:`
struct byte_sequence {
  std::string bytes{};
  bool operator==(const byte_sequence&) const = default;
};
/// `@1659578233`, seconds since 1970.
struct date {
  std::int64_t seconds = 0;
  bool operator==(const date&) const = default;
};
/// `%"f%c3%bc"`: text in UTF-8.
struct display_string {
  std::string text{};
  bool operator==(const display_string&) const = default;
};

/// `std::int64_t` is an integer of at most 15 digits, `std::string` a string of printable ASCII.
using bare_item = std::variant<std::int64_t, decimal, std::string, token, byte_sequence, bool, date,
                               display_string>;
using parameters = std::vector<std::pair<std::string, bare_item>>;

struct item {
  bare_item value{};
  http::structured::parameters parameters{};
  bool operator==(const item&) const = default;
};
struct inner_list {
  std::vector<item> items{};
  http::structured::parameters parameters{};
  bool operator==(const inner_list&) const = default;
};
using member = std::variant<item, inner_list>;
using list = std::vector<member>;
using dictionary = std::vector<std::pair<std::string, member>>;

[[nodiscard]] std::optional<item> parse_item(std::string_view text);
/// Several fields of one name are joined with commas first.
[[nodiscard]] std::optional<list> parse_list(std::string_view text);
[[nodiscard]] std::optional<dictionary> parse_dictionary(std::string_view text);

/// These throw errc::invalid_argument if a value cannot be written: a number out of range, a string
/// with a character outside printable ASCII, a key or token that is not one.
[[nodiscard]] std::string serialize(const item& value);
[[nodiscard]] std::string serialize(const list& value);
[[nodiscard]] std::string serialize(const dictionary& value);

/// Returns the parameter with this key, or null.
[[nodiscard]] const bare_item* find(const parameters& values, std::string_view key) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::http::structured
