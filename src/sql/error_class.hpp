#pragma once

/// \file
/// Tables that map the error codes of a database to holdfast::error.

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::sql {

// Values of the fields of error_class.
inline constexpr bool transient = true;
inline constexpr bool permanent = false;
inline constexpr bool hidden = true;

/// What a failure means to the caller.
struct error_class {
  errc code;
  bool transient = permanent;
  /// What is wrong and what to do. It follows the text of the server, if that is shown.
  std::string_view advice{};
  /// The message does not contain the text of the server, which may repeat a value, such as a
  /// payload.
  bool hides_server_text = false;
  /// A column that must not be NULL would be NULL.
  bool is_not_null_violation = false;
};

struct sqlstate_class {
  std::string_view prefix;  ///< an SQLSTATE, or its first characters
  error_class meaning;
};

/// Returns the class of the first row whose prefix matches, or null. A row for a group of SQLSTATEs
/// ("42") therefore stands after the rows of its members ("42501").
[[nodiscard]] const error_class* find_class(std::span<const sqlstate_class> table,
                                            std::string_view sqlstate);

/// Creates the error of a class. `column` is the column that must not be NULL, if the database
/// names it. `text` is the text of the server, as a message may show it.
[[nodiscard]] error make_error(const error_class& meaning, std::string text, error::details details,
                               std::string_view column = {});

/// The advice for a NULL in a column that must not be NULL. No value of an entry is wrong, but the
/// table: Holdfast does not write that column. (The store explains its own columns.)
inline constexpr std::string_view not_null_advice =
    "a column that Holdfast does not write must not be NULL; give the column a default, or allow "
    "NULL";

/// Text for a log: one line of at most `limit` bytes, without control characters. A longer text is
/// cut between two characters and ends with "...". `limit` must be at least 3.
[[nodiscard]] std::string one_line_excerpt(std::string_view text, std::size_t limit);

}  // namespace HOLDFAST_NAMESPACE::detail::sql
