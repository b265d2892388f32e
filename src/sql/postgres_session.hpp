#pragma once

#include <holdfast/version.hpp>

#include "sql/postgres_binary.hpp"
#include "sql/postgres_connection.hpp"
#include "sql/postgres_errors.hpp"

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

struct pg_conn;    // libpq's PGconn
struct pg_result;  // and PGresult

namespace HOLDFAST_NAMESPACE::sql::postgres {

struct clear_result {
  void operator()(pg_result* r) const noexcept;
};
using result = std::unique_ptr<pg_result, clear_result>;

/// Rows that a statement changed; 0 for one that changes none.
[[nodiscard]] std::uint64_t affected_rows(const pg_result* r) noexcept;

/// When a call must end.
struct deadline {
  explicit deadline(std::chrono::milliseconds longest) : limit(longest), when(std::chrono::steady_clock::now() + longest) {}
  std::chrono::milliseconds limit;
  std::chrono::steady_clock::time_point when;
};

/// What is in doubt when the connection is lost while a statement is on its way.
enum class effect : std::uint8_t {
  none,     ///< it changes nothing, or nothing that a lost connection does not undo
  commits,  ///< it makes a change last
};

/// Who is on the other side: H2 speaks this protocol, too, with words and habits of its own.
struct server_kind {
  std::string_view name = "PostgreSQL";
  error (*explain)(const server_message&) = &from_server;
  bool acknowledge_at_once = false;  ///< its answer comes in pieces, each held back until the one before is acknowledged
};

/// A conversation with a server over libpq: whole statements out, whole answers in, and nothing waits longer than its deadline, whatever
/// the server or the network does. Failures leave as holdfast::error; those without an answer leave the session broken.
class session {
 public:
  /// Connects.
  explicit session(const postgres_options& options, server_kind kind = {});
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  ~session();

  /// Text of one or more statements, without parameters. The last result.
  result query(const std::string& text, effect e, const deadline& until);
  void prepare(const std::string& name, const std::string& text, const wire_parameters& parameters, const deadline& until);
  result execute(const std::string& name, const wire_parameters& parameters, effect e, const deadline& until);
  /// Prepared and run in one piece, and forgotten.
  result execute_text(const std::string& text, const wire_parameters& parameters, effect e, const deadline& until);

  /// What somebody said on a channel that was listened to; waits for it until then. Nothing: nobody said anything.
  std::optional<std::string> notification(const deadline& until);

  [[nodiscard]] bool in_transaction() const noexcept;
  [[nodiscard]] bool in_failed_transaction() const noexcept;
  [[nodiscard]] bool broken() const noexcept;
  /// Hangs up. What has not left yet never will.
  void abandon() noexcept;

  [[nodiscard]] transport_kind transport() const noexcept { return transport_; }
  /// Empty when the server did not say.
  [[nodiscard]] std::string server_setting(const char* name) const;

 private:
  void wait(short events, const deadline& until, bool in_doubt);
  /// Bytes that arrived since the connection was made; 0 on a Unix socket, whose server is this machine's own.
  [[nodiscard]] std::uint64_t received() const noexcept;
  void prepare_to_send();
  void send(int accepted, const deadline& until);
  result receive(effect e, const deadline& until);
  [[noreturn]] void lose(bool in_doubt);
  void connect(const postgres_options& options);
  static void keep_last_words(void* self, const pg_result* notice) noexcept;

  pg_conn* handle_ = nullptr;
  transport_kind transport_ = transport_kind::unknown;
  server_kind kind_;
  pid_t owner_;
  std::uint64_t received_before_ = 0;  // the statement that runs
  std::string last_words_{};           // the SQLSTATE with which the server hung up while nobody was asking
};

}  // namespace HOLDFAST_NAMESPACE::sql::postgres
