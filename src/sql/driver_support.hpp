#pragma once

/// \file
/// Checks and small conversions that all drivers need.

#include <holdfast/version.hpp>

#include "base/fork_detector.hpp"
#include "sql/public_names.hpp"

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sql {

/// Throws errc::invalid_argument unless there is a value for each declared parameter.
void check_parameter_count(const statement& s, std::span<const parameter> parameters);

/// Throws errc::invalid_argument unless the columns and common parameters are as many as declared
/// and the columns have equal length. Returns the number of rows.
[[nodiscard]] std::size_t check_batch(const batch_statement& s,
                                      std::span<const std::vector<parameter>> columns,
                                      std::span<const parameter> common);

/// Throws errc::invalid_argument if a statement returned another number of columns than it
/// declares.
void check_column_count(std::size_t returned, std::size_t declared);

/// Throws errc::invalid_argument if the text of a statement contains a NUL byte, where libpq would
/// cut it off.
void check_statement_text(std::string_view text);

/// Throws errc::invalid_argument in a forked child: a connection belongs to the process that opened
/// it.
void check_process(pid_t owner);
void check_process(const fork_detector& process);

/// Throws errc::invalid_argument: the value of a parameter does not have the declared type.
[[noreturn]] void fail_type(type declared);

[[nodiscard]] inline bool is_null(const parameter& p) noexcept {
  return std::holds_alternative<std::monostate>(p);
}

/// The characters of a text or bytes value, or nullopt for other types. Drivers accept text for
/// bytes and bytes for text, because a payload is either, depending on its column.
[[nodiscard]] std::optional<std::string_view> characters_of(const parameter& p) noexcept;

/// Adds the rows and the row count of one part of a batch to the result of the batch.
void append_result(outcome& total, outcome part, std::size_t columns);

}  // namespace HOLDFAST_NAMESPACE::detail::sql
