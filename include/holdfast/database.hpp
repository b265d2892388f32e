#pragma once

/// \file
/// The one object behind every URL: connections, pooled and shared by all that hangs on it.

#include <holdfast/clock.hpp>
#include <holdfast/executor.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/sequence.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

class outbox;
struct outbox_options;

/// How connections are kept. The defaults are those of the seed.
struct pool_options {
  std::size_t maximum = 20;                                             ///< connections at the same time
  std::chrono::milliseconds acquire_timeout = std::chrono::seconds(8);  ///< how long a caller waits for one
  std::chrono::milliseconds leak_detection = std::chrono::seconds(15);  ///< a connection held longer is warned about; 0 means never
  std::chrono::milliseconds max_lifetime = std::chrono::minutes(30);    ///< an older connection is replaced when it comes back
};

struct database_options {
  pool_options pool{};
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(5);     ///< to make a connection
  std::chrono::milliseconds statement_timeout = std::chrono::seconds(10);  ///< of one statement, also on a server that hangs
  std::string user{};                                                      ///< instead of the one in the URL
  /// Instead of the one in the URL; else the variable HOLDFAST_PASSWORD (for a Redis, HOLDFAST_REDIS_PASSWORD), else `password_file`.
  std::string password{};
  std::string password_file{};  ///< its first line is the password
  /// Instead of asking the server; a custom resolver returns what it found out.
  std::function<sql::dialect_id(sql::connection&)> resolve_dialect{};
  std::shared_ptr<const holdfast::clock> clock{};  ///< the machine's unless given
  log_sink log{};                                  ///< for an operator, without payloads or passwords; nobody listens unless given
  std::shared_ptr<metrics_sink> metrics{};         ///< for the numbers; nothing is counted unless given
  std::shared_ptr<holdfast::executor> executor{};  ///< for work in the background; 2 threads, started when needed, unless given
};

/// The names of the statements that a store sends, for `store_options::replace_query`.
enum class store_query : std::uint8_t { upsert, insert, update, find, find_all, erase, expire, count, rewrite, name_after };

/// What the payload column holds.
enum class payload_column : std::uint8_t {
  text,  ///< TEXT and alike: JSON, readable by other programs; no NUL bytes
  bytes  ///< BYTEA, BLOB: anything
};

/// Whether a store looks at its table and its server when it is opened (a few small questions, once); see store/probe.hpp.
enum class start_probe : std::uint8_t {
  off,    ///< it does not
  warn,   ///< logs what is not as it should be, and refuses a table on which entries would be lost or mixed up
  strict  ///< refuses whatever deserves a warning
};

struct store_options {
  std::string prefix{};                                          ///< of the table: letters, digits, `_`, and qualifiers with dots
  bool create_schema = false;                                    ///< make the table and its index if they are not there
  std::chrono::microseconds max_skew = std::chrono::minutes(5);  ///< see store::put
  payload_column payload = payload_column::text;
  /// `java`: the table is shared with services that use the Java library; see docs/java.md. Entries that it could not find or read are
  /// refused with errc::invalid_argument.
  holdfast::peer peer = holdfast::peer::none;
  /// The zone in which TIMESTAMP columns without one are kept, where a PostgreSQL table has such: `UTC`, `Europe/Paris`, `+02:00`. Without
  /// it such a table is refused at the first use. Not needed, and not looked at, where the columns have a zone. On MySQL and MariaDB, whose
  /// DATETIME columns have none, `UTC` is the only zone; a table that is shared with Java must state it.
  std::string zone{};
  /// The tenants' realms, each with what stands in front of the prefix: `ACME_` for a table of its own, `acme.` for a schema of its own.
  /// Nothing here means no tenants; else an entry's realm must be one of these.
  std::map<std::string, std::string, std::less<>> realms{};
  start_probe probe = start_probe::warn;  ///< `warn` does not look where `replace_query` is given: the table may be another
  /// Replaces any statement, of each realm: given the standard text, returns the one to send (same parameters, same columns). `upsert` is given the
  /// statement up to its rows on SQLite and MySQL, where rows and guard follow; `find_all` is asked twice, for the first page and the next.
  std::function<std::string(store_query which, const std::string& standard)> replace_query{};
};

/// What creates the tables (one for each realm) and their indexes on a database of this dialect, one statement each. Nothing happens where they are there already.
/// Throws errc::invalid_argument (prefix, unknown dialect).
[[nodiscard]] HOLDFAST_API std::vector<std::string> store_schema(sql::dialect_id dialect, const store_options& options = {});

/// What creates the table of sequences on a database of this dialect, one statement each. Nothing happens where it is there already.
/// Throws errc::invalid_argument (prefix, unknown dialect).
[[nodiscard]] HOLDFAST_API std::vector<std::string> sequence_schema(sql::dialect_id dialect, const sequence_store_options& options = {});

/// A database: one pool, or one Redis client, shared by all that hangs on it. Copies share the same.
/// Thread-safety: every function may be called from any thread. After fork the child must not use it: open a new one.
class HOLDFAST_API database {
 public:
  /// Throws errc::invalid_argument for options that cannot hold; connects only when it must.
  database(sql::connection_factory connect, database_options options);

  /// The store on this database. Throws errc::invalid_argument (prefix, skew, peer, zone; a Redis keeps no entries), and errc::missing_object or errc::unsupported_type
  /// for a table that the probe refuses. A missing table is an error of the first operation.
  [[nodiscard]] std::shared_ptr<holdfast::store> store(store_options options = {}) const;

  /// The sequence of this name on this database; see sequence.hpp. Throws errc::invalid_argument (name, prefix, options that cannot hold), errc::unsupported_type
  /// when the settings of the server could make it forget blocks that it granted, and what the database throws.
  [[nodiscard]] holdfast::sequence sequence(std::string_view name, sequence_options options = {}) const;

  /// Where the counters of the sequences with this prefix are: to list, raise or check them.
  [[nodiscard]] std::shared_ptr<holdfast::block_store> block_store(sequence_store_options options = {}) const;

  /// The outbox on this database; include holdfast/outbox.hpp. Throws errc::invalid_argument for options that cannot hold, for another number
  /// of lanes than it was made with, and for a server that cannot keep what is asked.
  [[nodiscard]] holdfast::outbox outbox(outbox_options options) const;
  [[nodiscard]] holdfast::outbox outbox() const;

  /// Which dialect of SQL is spoken; asks once. `unknown` in memory and on Redis.
  [[nodiscard]] sql::dialect_id dialect() const;

  struct state;  ///< private to the library
  [[nodiscard]] const std::shared_ptr<state>& shared() const noexcept { return state_; }

 private:
  friend HOLDFAST_API database open(std::string_view url, database_options options);
  explicit database(std::shared_ptr<state> shared) : state_(std::move(shared)) {}

  std::shared_ptr<state> state_;
};

/// Opens a database by its URL:
///
/// | URL | database |
/// | --- | --- |
/// | `memory:` | in this process, gone with it |
/// | `sqlite:answers.db`, `sqlite:///var/lib/app/answers.db` | SQLite, WAL, every commit synced |
/// | `postgresql://user@host:5432/name?sslmode=verify-full` | PostgreSQL; parameters as libpq has them, `sslmode=require` to other machines |
/// | `mysql://user@host:3306/name?tls=1&tls_ca=/etc/ca.pem` | MySQL and MariaDB; `tls=1`, not verified, to other machines |
/// | `h2://user@host:5435/name` | H2, over the PostgreSQL port of its server |
/// | `odbc:DSN=name`, `odbc:Driver=FreeTDS;Server=host;UID=app` | whatever has an ODBC driver; what follows `odbc:` is a connection string |
/// | `redis://host:6379/0`, `rediss://`, `redis+unix:///run/redis.sock` | Redis: sequences and outboxes, no store; see redis.hpp |
/// | `redis+cluster://host1:7000,host2:7000`, `rediss+cluster://` | Redis Cluster, the same |
///
/// One client serves all that hangs on a Redis: `pool.maximum` connections to each node, `statement_timeout` for a call; its password
/// comes from the options, the URL, the variable HOLDFAST_REDIS_PASSWORD, or the file.
///
/// A URL is trusted input: it decides which server gets the password, and `odbc:` loads a driver. The environment variable
/// HOLDFAST_SCHEMES=postgresql,redis limits the schemes. docs/tls.md has the defaults of encryption.
///
/// Throws errc::invalid_argument if the URL is invalid or its scheme is not allowed. Does not connect. A password is never printed.
[[nodiscard]] HOLDFAST_API database open(std::string_view url, database_options options = {});

}  // namespace HOLDFAST_NAMESPACE
