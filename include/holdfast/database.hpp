#pragma once

/// \file
/// A database opened by its URL. Its stores, sequences and outboxes share its connections.

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

struct database_options {
  pool_options pool{};
  /// Time limit to open a connection.
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(5);
  /// Time limit of one statement. It also holds if the server hangs.
  std::chrono::milliseconds statement_timeout = std::chrono::seconds(10);
  /// Overrides the user of the URL.
  std::string user{};
  /// Overrides the password of the URL. If both are empty, Holdfast uses the environment variable
  /// HOLDFAST_PASSWORD (HOLDFAST_REDIS_PASSWORD for Redis), then `password_file`.
  std::string password{};
  /// File whose first line is the password.
  std::string password_file{};
  /// Returns the dialect of a server. Empty: Holdfast asks the server.
  std::function<sql::dialect_id(sql::connection&)> resolve_dialect{};
  /// Null: the clock of this machine.
  std::shared_ptr<const holdfast::clock> clock{};
  /// Receives log records. They contain no payloads and no passwords.
  log_sink log{};
  /// Collects metrics. Null: no metrics.
  std::shared_ptr<metrics_sink> metrics{};
  /// Runs work in the background. Null: a pool with at most 2 threads, started on demand.
  std::shared_ptr<holdfast::executor> executor{};
};

/// A database. Its stores, sequences and outboxes share one connection pool, or one Redis client.
/// Copies refer to the same database.
/// Thread-safety: every function may be called from any thread. After fork the child must not use
/// it; it must open a new one.
class HOLDFAST_API database {
 public:
  /// Throws errc::invalid_argument if the options are invalid. Connects when it is first needed.
  database(sql::connection_factory connect, database_options options);

  /// The store on this database. Does not wait for the database, unless the options have
  /// `start_mode::require`: then it throws the errors of the database, and errc::missing_object or
  /// errc::unsupported_type if the probe refuses the table. Throws errc::invalid_argument if an
  /// option is invalid (prefix, skew, peer, zone) or the database is Redis, which has no store. If
  /// the table does not exist, the first operation throws.
  [[nodiscard]] std::shared_ptr<holdfast::store> store(store_options options = {}) const;

  /// The sequence of this name on this database; see sequence.hpp. Connects at its first operation,
  /// which throws the errors of the database, and errc::unsupported_type if the settings of the
  /// server could make it forget granted blocks. Throws errc::invalid_argument if the name, the
  /// prefix or an option is invalid.
  [[nodiscard]] holdfast::sequence sequence(std::string_view name,
                                            sequence_options options = {}) const;

  /// The store of the counters of all sequences with this prefix. Use it to list, raise or check
  /// them. Connects at its first operation.
  [[nodiscard]] std::shared_ptr<holdfast::block_store> block_store(
      sequence_store_options options = {}) const;

  /// The outbox on this database; include holdfast/outbox.hpp. Connects at its first operation,
  /// which throws the errors of the database, and errc::invalid_argument if the outbox was created
  /// with another number of lanes or the server cannot provide the requested guarantees. Throws
  /// errc::invalid_argument if an option is invalid.
  [[nodiscard]] holdfast::outbox outbox(outbox_options options) const;
  [[nodiscard]] holdfast::outbox outbox() const;

  /// The SQL dialect of the server, which is asked once. `unknown` for memory and Redis.
  [[nodiscard]] sql::dialect_id dialect() const;

  /// Private to the library.
  struct state;
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
/// | `memory:` | in this process, lost when it ends |
/// | `sqlite:answers.db`, `sqlite:///var/lib/app/answers.db` | SQLite, WAL, every commit synced |
/// | `postgresql://user@host:5432/name?sslmode=verify-full` | PostgreSQL; parameters as libpq has them, `sslmode=require` to other machines |
/// | `mysql://user@host:3306/name?tls=1&tls_ca=/etc/ca.pem` | MySQL and MariaDB; `tls=1`, not verified, to other machines |
/// | `h2://user@host:5435/name` | H2, over the PostgreSQL port of its server |
/// | `odbc:DSN=name`, `odbc:Driver=FreeTDS;Server=host;UID=app` | any database with an ODBC driver; the text after `odbc:` is a connection string |
/// | `redis://host:6379/0`, `rediss://`, `redis+unix:///run/redis.sock` | Redis: sequences and outboxes, no store; see redis.hpp |
/// | `redis+cluster://host1:7000,host2:7000`, `rediss+cluster://` | Redis Cluster, the same |
/// | `redis+sentinel://host1,host2/mymaster`, `rediss+sentinel://` | the master that Redis Sentinels name, the same |
///
/// On Redis, one client serves all sequences and outboxes. It opens at most `pool.maximum`
/// connections to each node, and `statement_timeout` limits each call.
///
/// A URL is trusted input: it determines which server receives the password, and `odbc:` loads a
/// driver. The environment variable HOLDFAST_SCHEMES=postgresql,redis limits the schemes.
/// docs/tls.md lists the defaults of encryption.
///
/// Throws errc::invalid_argument if the URL is invalid or its scheme is not allowed. Does not
/// connect. Messages and records never contain the password.
[[nodiscard]] HOLDFAST_API database open(std::string_view url, database_options options = {});

}  // namespace HOLDFAST_NAMESPACE
