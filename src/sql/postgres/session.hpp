#pragma once

#include <holdfast/version.hpp>

#include "sql/call_deadline.hpp"
#include "sql/postgres/connection.hpp"
#include "sql/postgres/errors.hpp"
#include "sql/postgres/login.hpp"
#include "sql/postgres/values.hpp"

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

struct pg_conn;    // PGconn of libpq
struct pg_result;  // PGresult of libpq

namespace HOLDFAST_NAMESPACE::detail::sql::postgres {

struct clear_result {
  void operator()(pg_result* result) const noexcept;
};
using result_handle = std::unique_ptr<pg_result, clear_result>;

/// The server at the other end. H2 speaks the same protocol, with error codes of its own.
struct server_kind {
  std::string_view name = "PostgreSQL";
  error (*to_error)(const server_message&) = &postgres::to_error;
  /// The server sends an answer in pieces and waits for the acknowledgement of each.
  bool acknowledge_at_once = false;
  /// What it means that the server closes the connection during the login without an answer. Empty:
  /// nothing in particular.
  std::string_view closed_at_login{};
};

/// A session over libpq: sends whole statements and receives whole answers. No call takes longer
/// than its deadline, whatever the server or the network does. If a call ends without an answer,
/// the session is broken.
class session {
 public:
  /// Connects, within options.connect_timeout.
  explicit session(const postgres_options& options, server_kind kind = {},
                   const target& server = {});
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  ~session();

  /// Runs one or more statements without parameters. Returns the last result.
  result_handle query(const std::string& text, loss on_loss, const call_deadline& deadline);
  void prepare(const std::string& name, const std::string& text, const wire_parameters& parameters,
               const call_deadline& deadline);
  result_handle execute(const std::string& name, const wire_parameters& parameters, loss on_loss,
                        const call_deadline& deadline);
  /// Prepares and runs a statement in one message, without a name.
  result_handle execute_text(const std::string& text, const wire_parameters& parameters,
                             loss on_loss, const call_deadline& deadline);

  /// Returns whether the server answers `text`, which must not change anything. If no answer comes
  /// until the deadline, the session is broken.
  [[nodiscard]] bool responds(const std::string& text, std::chrono::milliseconds longest) noexcept;

  /// Waits for a notification and returns its payload, or nullopt at the deadline.
  std::optional<std::string> notification(const call_deadline& deadline);

  [[nodiscard]] bool in_transaction() const noexcept;
  [[nodiscard]] bool in_failed_transaction() const noexcept;
  [[nodiscard]] bool broken() const noexcept;
  /// Whether the server refused a write because it is read-only.
  [[nodiscard]] bool read_only() const noexcept { return read_only_; }
  /// Closes the connection. Unsent data is never sent.
  void abandon() noexcept;
  /// Makes the call that another thread runs fail soon: its connection is lost. Thread-safe.
  void interrupt() noexcept { interrupted_ = true; }
  /// The process of the server, as the login told it. 0 if the connection is broken.
  [[nodiscard]] int server_process() const noexcept;
  /// The port that was connected to. Empty if the connection is broken.
  [[nodiscard]] std::string port() const;

  [[nodiscard]] transport_kind transport() const noexcept { return transport_; }
  /// Returns an empty text if the server did not report the setting.
  [[nodiscard]] std::string server_setting(const char* name) const;

 private:
  void connect(const postgres_options& options, const target& server);
  void wait_for_socket(short events, const call_deadline& deadline, loss on_loss);
  [[nodiscard]] std::uint64_t received_bytes() const noexcept;
  void prepare_to_send();
  void send(int accepted, const call_deadline& deadline);
  result_handle receive(loss on_loss, const call_deadline& deadline);
  [[noreturn]] void fail_connect(bool tls_by_default, bool in_tls_handshake);
  [[noreturn]] void lose(loss on_loss);
  [[nodiscard]] std::string address() const;
  static void keep_close_reason(void* self, const pg_result* notice) noexcept;

  pg_conn* handle_ = nullptr;
  transport_kind transport_ = transport_kind::unknown;
  bool read_only_ = false;
  std::atomic<bool> interrupted_ = false;
  server_kind kind_;
  pid_t owner_;                        // the process that connected
  std::uint64_t received_before_ = 0;  // bytes, when the current statement started
  std::string close_reason_{};  // the SQLSTATE with which the server closed an idle connection
};

}  // namespace HOLDFAST_NAMESPACE::detail::sql::postgres
