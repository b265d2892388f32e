#pragma once

/// \file
/// SQL statements with named parameters, written once for all dialects.
///
///     const auto find_ticket = builder.statement(
///         "SELECT o.EXPIRES FROM {tickets} o WHERE o.TICKET = :ticket/text {for_update}",
///         {sql::type::integer});
///     const auto rows = find_ticket.query(session, {{"ticket", name}});
///
/// - `:name` is an integer parameter, and `:name/text` a text. A name may occur several times in
///   one text. The session provides `:lane`.
/// - `{name}` is a fragment: a table, the number of a state, or a clause that differs between
///   dialects. See statement_builder.
/// - A list of rows travels as one text parameter with JSON, [[1,"a"],[2,"b"]], so that the text of
///   the statement does not depend on the number of rows and is prepared once. The statement reads
///   it as the table `g`. With one column it is [1,2]: the database need not parse each row again.
///
/// Texts are built when an outbox is opened, never for a single call.

#include <holdfast/join/transaction.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include "outbox/sql/schema.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// A transaction that works on one lane.
struct lane_session {
  join::transaction& transaction;
  std::size_t lane;
};

/// Which transactions see the locks of rows. On a node of Galera only those of the same node: of
/// two transactions on different nodes, one fails if both have changed the same row, and both
/// succeed otherwise, whatever they have locked. See docs/decisions/0116.
enum class lock_scope : std::uint8_t { server, node };

/// The value of one parameter. It refers to the caller's memory.
struct argument {
  argument(std::string_view parameter, std::integral auto number)
      : name(parameter), value(static_cast<std::int64_t>(number)) {}
  argument(std::string_view parameter, std::string_view text) : name(parameter), value(text) {}

  std::string_view name;
  sql::parameter value;
};

/// A statement whose parameters are bound by name.
class named_statement {
 public:
  /// `names` are the names of the parameters in the order of their positions in the text.
  named_statement(sql::statement positional, std::vector<std::string> names);

  /// Runs the statement and returns its rows.
  sql::rows query(const lane_session& session,
                  std::initializer_list<argument> arguments = {}) const;
  sql::rows query(sql::connection& connection) const;
  /// Runs a statement without rows and returns the number of rows that it changed.
  std::uint64_t execute(const lane_session& session, std::span<const argument> arguments) const;
  std::uint64_t execute(const lane_session& session,
                        std::initializer_list<argument> arguments = {}) const {
    return execute(session, std::span(arguments.begin(), arguments.size()));
  }

  [[nodiscard]] const sql::statement& positional() const noexcept { return positional_; }

 private:
  /// Throws errc::internal if an argument is missing.
  std::vector<sql::parameter> bind(std::span<const argument> arguments, std::size_t lane) const;

  sql::statement positional_;
  std::vector<std::string> names_;
};

/// A JSON parameter that holds rows. The first column identifies the row of the table that a
/// statement joins, updates or deletes.
struct row_list {
  enum class type : std::uint8_t { integer, name, long_text };
  struct column {
    std::string name;
    row_list::type type = row_list::type::integer;
  };

  std::string parameter;
  std::vector<column> columns;
};

/// Builds the statements of one outbox. Fragments that a text may use:
///
/// | fragment | meaning |
/// | --- | --- |
/// | events, entries, tickets, lanes, counters, stripes | a table |
/// | queued, parked, blocking, remembered | the number of a row_state |
/// | event | the columns of `o` that an event_row holds, with head and next |
/// | stored_event | the same without head and next |
/// | head, next | SEQ of the first event in the queue of the row `o`, and of the event after it |
/// | now_us, now_ms | the time; 0 on SQLite, see lane_table |
/// | for_update, skip_locked, for_share | locks the rows of `o`; empty on SQLite |
/// | due_index, key_index, time_index | forces an index; only on MySQL and MariaDB |
/// | insert_ignore, ignore_conflict | an INSERT that skips rows that exist; see keep_existing |
/// | no_due | the row `o` has no DUE |
/// | where_true | SQLite needs a WHERE between a SELECT and ON CONFLICT |
class statement_builder {
 public:
  /// Throws errc::unsupported_type if the outbox does not support the dialect.
  statement_builder(sql::dialect_id dialect, table_names tables,
                    lock_scope locks = lock_scope::server);

  [[nodiscard]] sql::dialect_id dialect() const noexcept { return dialect_; }
  [[nodiscard]] const table_names& tables() const noexcept { return tables_; }
  [[nodiscard]] bool postgres() const noexcept { return dialect_ == sql::dialect_id::postgresql; }
  [[nodiscard]] bool sqlite() const noexcept { return dialect_ == sql::dialect_id::sqlite; }
  /// MySQL or MariaDB.
  [[nodiscard]] bool mysql() const noexcept { return !postgres() && !sqlite(); }
  [[nodiscard]] lock_scope locks() const noexcept { return locks_; }

  /// Replaces fragments and parameters. `results` are the types of the columns that come back.
  /// Throws errc::internal if a fragment is unknown, or a parameter has no name or an unknown type.
  [[nodiscard]] named_statement statement(std::string_view text,
                                          std::vector<sql::type> results = {}) const;

  /// `(SELECT ...) g`: the rows of the list, and their positions in the column `n`. Use `n` only
  /// for ORDER BY: it begins with 0 on SQLite and with 1 elsewhere.
  [[nodiscard]] std::string rows(const row_list& list) const;
  /// `FROM table o JOIN rows ON o.column = g.<first column>`. The column must have a unique index.
  [[nodiscard]] std::string join(const std::string& table, const std::string& column,
                                 const row_list& list) const;
  /// `DELETE FROM table WHERE column IN rows`. A text may follow that begins with AND.
  [[nodiscard]] std::string erase(const std::string& table, const std::string& column,
                                  const row_list& list) const;
  /// Updates event rows by SEQ. An assignment is a column and an expression of `o` and `g`.
  [[nodiscard]] std::string update_events(
      const row_list& list,
      std::initializer_list<std::pair<std::string_view, std::string_view>> assignments,
      std::string_view condition = {}) const;
  /// The end of an INSERT that leaves a row with the same key `column` unchanged. Values that do
  /// not fit are errors, unlike with {insert_ignore}, but the number of changed rows is not
  /// reliable: on MySQL and MariaDB it depends on the flag CLIENT_FOUND_ROWS of the connection.
  [[nodiscard]] std::string keep_existing(const std::string& column) const;
  [[nodiscard]] std::string sum(const std::string& expression) const;

 private:
  sql::dialect_id dialect_;
  table_names tables_;
  lock_scope locks_;
  fragment_map fragments_{};
};

/// Writes the JSON text of a row_list.
class json_rows {
 public:
  /// Values are integers, texts, or optional ones.
  template <class... Values>
  void add(const Values&... values) {
    if (!text_.empty()) text_ += ',';
    if constexpr (sizeof...(values) > 1) text_ += '[';
    (append(values), ...);
    if constexpr (sizeof...(values) > 1) text_.back() = ']';  // instead of the last comma
    else text_.pop_back();
  }
  [[nodiscard]] bool empty() const noexcept { return text_.empty(); }
  [[nodiscard]] std::string text() const { return "[" + text_ + "]"; }

 private:
  void append(std::integral auto number) { text_ += std::to_string(number) + ","; }
  void append(std::string_view text);
  template <class Value>
  void append(const std::optional<Value>& value) {
    if (value) append(*value);
    else text_ += "null,";
  }

  std::string text_{};
};

/// Writes an array of PostgreSQL as a text, {"a","b"}. A statement that casts it,
/// `:names/text::text[]`, reads it several times as fast as a row_list: a column of a row_list
/// parses the JSON of its row.
class array_text {
 public:
  void add(std::integral auto number) { text_ += std::to_string(number) + ","; }
  void add(std::string_view text);
  [[nodiscard]] std::string text() const;

 private:
  std::string text_{};
};

/// The text of an array with these values.
template <class Range>
[[nodiscard]] std::string array_of(const Range& values) {
  array_text array;
  for (const auto& value : values) array.add(value);
  return array.text();
}

/// The JSON text of a list with one column.
template <class Range>
[[nodiscard]] std::string json_column(const Range& values) {
  json_rows rows;
  for (const auto& value : values) rows.add(value);
  return rows.text();
}

/// Reads the columns of one row from left to right. NULL is nullopt, 0 or an empty text. Throws
/// errc::internal if a column has another type.
class row_reader {
 public:
  explicit row_reader(const sql::rows& rows, std::size_t row = 0) : rows_(rows), row_(row) {}

  std::optional<std::int64_t> optional_integer();
  std::optional<std::string> optional_text();
  std::int64_t integer() { return optional_integer().value_or(0); }
  std::string text() { return optional_text().value_or(std::string()); }

 private:
  template <class Value>
  std::optional<Value> read(std::string_view type);

  const sql::rows& rows_;
  std::size_t row_;
  std::size_t column_ = 0;
};

/// The first column of all rows.
[[nodiscard]] std::vector<std::int64_t> integers(const sql::rows& rows);
/// The first column of the first row. Nothing if it is NULL or no row exists.
[[nodiscard]] std::optional<std::int64_t> first_integer(const sql::rows& rows);

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
