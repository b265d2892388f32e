#pragma once

/// \file
/// The interface between Holdfast and an SQL database.
///
/// Most applications do not need this file: `holdfast::open(url)` uses one of the built-in drivers.
/// Include it to bring your own connections. Derive from `sql::connection` and pass a factory:
///
///     class my_connection final : public holdfast::sql::connection { ... };
///
///     holdfast::database db([] { return std::make_unique<my_connection>(); }, {});
///     auto store = db.store();
///
/// Holdfast then pools the connections (`pool_options`), asks each for its dialect, and sends
/// statements that are written in that dialect.
///
/// A connection throws `holdfast::error`. The code and the flags decide what Holdfast does next,
/// so they have to follow this table:
///
/// | failure | errc | transient | in doubt |
/// | --- | --- | --- | --- |
/// | serialization failure, deadlock, lock timeout, busy | unavailable | yes | no |
/// | connection lost before anything was sent | unavailable | yes | no |
/// | connection lost after sending, statement timed out | unavailable or timeout | yes | yes |
/// | the database does not understand the statement | grammar | no | no |
/// | a table or column is missing or has the wrong type | missing_object | no | no |
/// | a column must not be NULL (set `not_null_column`) | missing_object | no | no |
/// | no privilege, wrong password | permission | no | no |
/// | duplicate key | duplicate | no | no |
/// | value too long for its column | too_large | no | no |

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

/// The type of a parameter or of a result column. Times are UTC with microseconds.
enum class type : std::uint8_t { integer, text, bytes, time };
/// The name of the enumerator, for example `integer`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(type value_type) noexcept;

/// The value of a parameter; monostate is NULL. Text and bytes refer to the caller's memory, which
/// must outlive the call.
using parameter = std::variant<std::monostate, std::int64_t, std::string_view,
                               std::span<const std::byte>, timestamp>;

/// A value of a row; monostate is NULL. A time that `timestamp` cannot represent is read as NULL.
using value = std::variant<std::monostate, std::int64_t, std::string, timestamp>;

/// A statement in one dialect. Values never appear in the text: they are parameters, written `$1`,
/// `$2`, ... for PostgreSQL and `?` for every other database.
struct statement {
  std::string text;
  /// Types of the parameters, in order.
  std::vector<type> parameters{};
  /// Types of the result columns, in order. Text and bytes are both read into a std::string.
  std::vector<type> results{};
  /// The largest number of rows to read; 0 means all. Set only where the dialect has no clause such
  /// as LIMIT; the built-in drivers other than ODBC ignore it.
  std::size_t most_rows = 0;
};

/// A statement for many rows. Each driver sends it in its own way:
///
/// | database | what is sent |
/// | --- | --- |
/// | PostgreSQL | `text` once; each column is bound as one array |
/// | MySQL, MariaDB, H2 | `text`, then `row` once per row, separated by commas, then `tail` |
/// | SQLite | `text row tail` once per row, in one transaction |
/// | ODBC | `text row tail` with arrays of parameters |
struct batch_statement {
  std::string text;
  std::string row{};
  std::string tail{};
  /// Types of the columns of one row.
  std::vector<type> columns{};
  /// Types of the parameters that are the same for all rows. They follow the columns.
  std::vector<type> common{};
  std::vector<type> results{};
  /// The parameter of each `?` in `text row tail`, for one row: the index of a column, or the
  /// number of columns plus the index of a common parameter. Empty: every parameter once, in order.
  std::vector<std::uint16_t> order{};
};

/// The rows of a result, row by row in one vector.
class rows {
 public:
  explicit rows(std::size_t columns = 0) : columns_(columns) {}

  [[nodiscard]] std::size_t size() const noexcept {
    return columns_ == 0 ? 0 : values_.size() / columns_;
  }
  [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
  [[nodiscard]] const value& at(std::size_t row, std::size_t column) const {
    return values_.at(row * columns_ + column);
  }
  [[nodiscard]] value& at(std::size_t row, std::size_t column) {
    return values_.at(row * columns_ + column);
  }
  /// Appends the next value of the current row. Returns it; the reference is valid until the next
  /// call.
  const value& add(value v) {
    if (values_.empty()) values_.reserve(columns_);
    return values_.emplace_back(std::move(v));
  }
  void reserve(std::size_t count) { values_.reserve(count * columns_); }

 private:
  std::size_t columns_;
  std::vector<value> values_{};
};

/// The result of a statement.
struct outcome {
  sql::rows rows{};
  /// Affected rows as the server counts them. MySQL counts 2 for an updated row of an upsert and 0
  /// for an unchanged one.
  std::uint64_t affected = 0;
  /// MySQL and MariaDB only: LAST_INSERT_ID() after the statement.
  std::uint64_t insert_id = 0;
};

/// The SQL dialects that Holdfast can write.
enum class dialect_id : std::uint8_t {
  sqlite,
  postgresql,
  mysql,
  mariadb,
  h2,
  sqlserver,
  oracle,
  unknown
};
[[nodiscard]] HOLDFAST_API std::string_view to_string(dialect_id id) noexcept;

/// How the traffic of a connection is protected. docs/tls.md lists the defaults.
enum class transport_kind : std::uint8_t {
  unknown,    ///< the driver cannot tell: ODBC, and connections that do not override transport()
  local,      ///< does not leave this machine
  plaintext,  ///< not encrypted
  encrypted,  ///< encrypted, but the identity of the server was not verified
  verified    ///< encrypted, and the certificate of the server was verified
};
/// The name of the enumerator, for example `unknown`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(transport_kind kind) noexcept;

/// One connection to a database.
///
/// Thread-safety: none. The pool lends a connection to one thread at a time, and to a different one
/// each time. Exception safety: after a failure the connection is usable unless `broken()`.
class HOLDFAST_API connection {
 public:
  virtual ~connection();

  /// The dialect of the server, as the server reports it.
  [[nodiscard]] virtual dialect_id dialect() const noexcept = 0;

  [[nodiscard]] virtual transport_kind transport() const noexcept {
    return transport_kind::unknown;
  }

  /// Runs a statement; outside a transaction it commits immediately. The same texts come again and
  /// again: prepare each once and keep it.
  virtual outcome execute(const statement& s, std::span<const parameter> parameters) = 0;

  /// Runs a statement for many rows: all of them or none. `columns` have equal length; row i is
  /// {columns[0][i], columns[1][i], ...}.
  virtual outcome batch(const batch_statement& s, std::span<const std::vector<parameter>> columns,
                        std::span<const parameter> common) = 0;

  /// Runs text without parameters, such as DDL and settings. Such texts do not come again.
  virtual void run(const std::string& text) = 0;

  /// Starts a transaction. It ends with commit() or rollback().
  virtual void begin() = 0;
  /// If the connection is lost during the commit, the error is in doubt.
  virtual void commit() = 0;
  /// Never throws. A connection that cannot roll back becomes broken.
  virtual void rollback() noexcept = 0;

  /// Sets the longest time that a call may take from now on. The call returns in time even if the
  /// server hangs.
  virtual void limit(std::chrono::milliseconds longest) = 0;

  /// Subscribes to a notification channel (PostgreSQL: LISTEN). The default implementation throws
  /// errc::unsupported_type; Holdfast then polls.
  virtual void listen(const std::string& channel);
  /// Waits at most `longest` for a notification and returns its payload, or nullopt if none came.
  [[nodiscard]] virtual std::optional<std::string> notice(std::chrono::milliseconds longest);

  /// True if the connection cannot be used any more. The pool then closes it.
  [[nodiscard]] virtual bool broken() const noexcept = 0;

  /// Returns whether the server answers. Waits at most `longest`, and breaks the connection if no
  /// answer came. The pool asks before it lends a connection that was idle for a while: a firewall
  /// may have forgotten the connection without telling either side. The default implementation
  /// returns true.
  [[nodiscard]] virtual bool responds(std::chrono::milliseconds longest) noexcept;

  /// True after the server refused a write because it is read-only. The pool then closes the
  /// connection, so that a proxy can lead the next one to the new primary. The default
  /// implementation returns false.
  [[nodiscard]] virtual bool read_only() const noexcept;
};

/// Opens a connection. The pool calls it from any thread, possibly from several at once.
using connection_factory = std::function<std::unique_ptr<connection>()>;

}  // namespace HOLDFAST_NAMESPACE::sql

namespace HOLDFAST_NAMESPACE {

/// Limits of the connection pool. The defaults are those of the published design. 0 switches a
/// check off.
struct pool_options {
  /// The largest number of open connections; at least 2, because one is reserved for writing.
  std::size_t maximum = 20;
  /// How long a caller waits for a free connection.
  std::chrono::milliseconds acquire_timeout = std::chrono::seconds(8);
  /// A warning with the name of the operation is logged when a connection is in use for longer than
  /// this, while it is still in use.
  std::chrono::milliseconds leak_detection = std::chrono::seconds(15);
  /// A connection older than this is closed as soon as it is not in use.
  std::chrono::milliseconds max_lifetime = std::chrono::minutes(30);
  /// A connection that was idle for longer than this is closed. Lower it if the server has few
  /// connections for many processes.
  std::chrono::milliseconds idle_timeout = std::chrono::minutes(10);
  /// A connection that was idle for longer than this must answer a ping before it is used.
  std::chrono::milliseconds validate_after = std::chrono::seconds(1);
  /// How long the answer to that ping may take. Raise it if the server is on another continent.
  std::chrono::milliseconds validation_timeout = std::chrono::milliseconds(500);
  /// The system probes a TCP connection that was idle for this long, so that NAT gateways and
  /// firewalls do not forget it, and closes it after three probes without an answer, 10 s apart. 0
  /// leaves it to the system, which waits for two hours. Parameters in the URL of PostgreSQL
  /// (`keepalives_idle=60`) take precedence; an ODBC driver has its own settings.
  std::chrono::milliseconds keepalive = std::chrono::seconds(30);
};

}  // namespace HOLDFAST_NAMESPACE
