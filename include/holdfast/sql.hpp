#pragma once

/// \file
/// The SQL substrate: what a driver must do for the store, the sequence and the outbox. Applications meet it only when they bring
/// connections of their own; everybody else says `holdfast::open(url)`.

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace HOLDFAST_NAMESPACE::sql {

/// What a parameter or a column holds.
enum class type : std::uint8_t { integer, text, bytes, time };

/// One parameter. It refers to the caller's memory, which must outlive the call. monostate is NULL.
using parameter = std::variant<std::monostate, std::int64_t, std::string_view, std::span<const std::byte>, timestamp>;

/// One value of a row. monostate is NULL, or a time that cannot be one.
using value = std::variant<std::monostate, std::int64_t, std::string, timestamp>;

/// A statement, in the words of one dialect. Parameters are `?` or `$1` as the dialect wants them; values never stand in the text.
struct statement {
  std::string text;
  std::vector<type> parameters{};  ///< in order
  std::vector<type> results{};     ///< the columns that come back; bytes and text are both read into a std::string
  /// No more rows than this are read, where the words of the dialect cannot say it (ODBC only; the others have such words). 0: all.
  std::size_t most_rows = 0;
};

/// A statement for many rows that travels as one. How is the driver's business:
/// PostgreSQL binds one array for each column (`text` alone is used), MySQL and MariaDB repeat `row` (joined with commas, between `text`
/// and `tail`), as H2 does; SQLite runs `text row tail` once for each row, in one transaction; ODBC gives it arrays of parameters.
struct batch_statement {
  std::string text;
  std::string row{};
  std::string tail{};
  std::vector<type> columns{};  ///< of each row
  std::vector<type> common{};   ///< parameters that are the same for all rows; they come last
  std::vector<type> results{};
  /// Which parameter each question mark of `text row tail` takes, for one row: a column, or, counted on, a common one. Empty: each once, in order.
  std::vector<std::uint8_t> order{};
};

/// Rows, in one piece of memory.
class rows {
 public:
  explicit rows(std::size_t columns = 0) : columns_(columns) {}

  [[nodiscard]] std::size_t size() const noexcept { return columns_ == 0 ? 0 : values_.size() / columns_; }
  [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
  [[nodiscard]] const value& at(std::size_t row, std::size_t column) const { return values_.at(row * columns_ + column); }
  [[nodiscard]] value& at(std::size_t row, std::size_t column) { return values_.at(row * columns_ + column); }
  void add(value v) { values_.push_back(std::move(v)); }
  void reserve(std::size_t count) { values_.reserve(count * columns_); }

 private:
  std::size_t columns_;
  std::vector<value> values_{};
};

/// What came of a statement.
struct outcome {
  sql::rows rows{};
  std::uint64_t affected = 0;   ///< as the server counts; MySQL counts an update as 2 and an unchanged row as 0
  std::uint64_t insert_id = 0;  ///< on MySQL and MariaDB: what LAST_INSERT_ID() is after the statement
};

/// How a failure is acted on; it travels in holdfast::error as its code and flags.
///
/// | class | errc | transient | in doubt |
/// | --- | --- | --- | --- |
/// | serialization failure, deadlock, lock timeout, busy | unavailable | yes | no |
/// | connection lost, before anything was sent | unavailable | yes | no |
/// | connection lost after sending, statement timed out | unavailable or timeout | yes | yes |
/// | refused grammar | grammar | no | no |
/// | table or column missing, or not as it must be | missing_object | no | no |
/// | no privilege, wrong password | permission | no | no |
/// | duplicate key | duplicate | no | no |
/// | value too long for its column | too_large | no | no |

/// The systems whose words we know.
enum class dialect_id : std::uint8_t { sqlite, postgresql, mysql, mariadb, h2, sqlserver, oracle, unknown };
[[nodiscard]] HOLDFAST_API std::string_view to_string(dialect_id id) noexcept;

/// How what a connection sends is protected on its way; docs/tls.md has the defaults.
enum class transport_kind : std::uint8_t {
  unknown,    ///< the driver does not say: ODBC, and connections of the application's own
  local,      ///< it does not leave this machine
  plaintext,  ///< it can be read and changed on the way
  encrypted,  ///< it cannot be read by a listener, but the server was not verified, and could be another one
  verified    ///< encrypted, and the server's certificate was verified
};

/// One connection.
/// Thread-safety: none; a connection belongs to one thread at a time. Only `abort` may be called from another.
/// Exception safety: after a failure the connection is usable unless `broken()`.
class HOLDFAST_API connection {
 public:
  virtual ~connection();

  /// Which dialect the server speaks, by asking it.
  [[nodiscard]] virtual dialect_id dialect() const noexcept = 0;

  [[nodiscard]] virtual transport_kind transport() const noexcept { return transport_kind::unknown; }

  /// Runs a statement, prepared once and kept. Outside a transaction it commits by itself.
  virtual outcome execute(const statement& s, std::span<const parameter> parameters) = 0;
  /// Runs a statement for many rows, atomically; `columns` are columns of equal length, row i is {columns[0][i], columns[1][i], ...}.
  virtual outcome batch(const batch_statement& s, std::span<const std::vector<parameter>> columns, std::span<const parameter> common) = 0;
  /// Runs text without parameters: DDL, settings. Never kept.
  virtual void run(const std::string& text) = 0;

  virtual void begin() = 0;
  /// A lost connection during commit leaves the error in doubt.
  virtual void commit() = 0;
  /// Never throws; a connection that cannot roll back is broken.
  virtual void rollback() noexcept = 0;

  /// The longest a statement may take from now on; ended even when the server hangs.
  virtual void limit(std::chrono::milliseconds longest) = 0;

  /// PostgreSQL: what others say on this channel (NOTIFY) is kept for `notice` from now on. Throws errc::unsupported_type elsewhere.
  virtual void listen(const std::string& channel);
  /// What was said: the payload of a notification. Waits at most so long; nothing when nobody said anything.
  [[nodiscard]] virtual std::optional<std::string> notice(std::chrono::milliseconds longest);

  /// No use any more: the pool throws it away.
  [[nodiscard]] virtual bool broken() const noexcept = 0;
};

/// Makes connections; called by the pool when it needs one more.
using connection_factory = std::function<std::unique_ptr<connection>()>;

}  // namespace HOLDFAST_NAMESPACE::sql
