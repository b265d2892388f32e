#pragma once

/// \file
/// Converts between the two kinds of placeholders in SQL text: `?` (MySQL, SQLite, ODBC, ...) and
/// `$1`, `$2`, ... (PostgreSQL).

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sql {

/// Replaces each `?` by `$1`, `$2`, ... in order. The text must not have a `?` in quotes.
[[nodiscard]] HOLDFAST_API std::string number_placeholders(std::string_view text);

/// The placeholder of parameter `number` (from 1) in a dialect: `$n` for PostgreSQL, else `?`.
[[nodiscard]] HOLDFAST_API std::string placeholder(dialect_id dialect, unsigned number);

/// SQL text with `?` only.
struct question_mark_text {
  std::string text{};
  /// The parameter of each `?`, counted from 0. Empty: every parameter once, in order.
  std::vector<std::uint16_t> order{};
};

/// Replaces `$1`, `$2`, ... by `?`, except in quotes. Text with `?` is returned unchanged. Throws
/// errc::invalid_argument for a number above 255.
[[nodiscard]] HOLDFAST_API question_mark_text use_question_marks(std::string_view text);

}  // namespace HOLDFAST_NAMESPACE::detail::sql
