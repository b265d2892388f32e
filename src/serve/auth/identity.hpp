#pragma once

/// \file
/// Identity and audit of the server: tokens, sessions, the audit log, and the state database in
/// which they are kept.
///
///   loop threads      check requests against tables in memory; never wait
///   worker threads    change tokens and sessions in the database, then read the tables again
///   hf-state          reads the tables after changes of other processes, once a second; writes the
///                     audit log, and when tokens and sessions were last used
///
/// If the database fails, the tables in memory stay in use, and expiry dates are still obeyed.
/// Before they were read once, every token is answered with 503.

#include <holdfast/clock.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/version.hpp>

#include "serve/auth/audit_writer.hpp"
#include "serve/auth/rate_limit.hpp"
#include "serve/auth/request_authenticator.hpp"
#include "serve/auth/session_table.hpp"
#include "serve/auth/state_database.hpp"
#include "serve/auth/token_table.hpp"
#include "serve/live/event_sink.hpp"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

struct identity_options {
  /// Empty: default_state_url.
  std::string state_url{};
  std::string state_password{};
  request_rules rules{};
  /// Null: the clock of this machine.
  std::shared_ptr<const holdfast::clock> clock{};
  log_sink log{};
  std::shared_ptr<metrics_sink> metrics{};
  /// How soon a change of another process is seen. Tests shorten it.
  std::chrono::milliseconds refresh_interval{1'000};
  std::chrono::milliseconds database_timeout{5'000};
};

/// The credentials of a server that has no usable token yet. They are shown once.
struct first_credentials {
  /// Of an admin, for 24 hours.
  std::string token;
  /// Signs a browser in once, for 10 minutes: `http://127.0.0.1:7360/#sign-in=...`. A browser does
  /// not send the part after `#`, so that no log has it. Empty: there is no console.
  std::string link;
  /// The command that adds a token to the state of this server.
  std::string add_command{};
};

/// Thread-safety: may be called from any thread.
class identity {
 public:
  /// Opens the state database. A failure is logged, and repeated in the background. Throws
  /// errc::invalid_argument if an option is invalid.
  explicit identity(identity_options options);
  /// As `finish`.
  ~identity();
  identity(const identity&) = delete;
  identity& operator=(const identity&) = delete;

  [[nodiscard]] authenticator& requests() noexcept { return requests_; }
  /// Replaces the clients that certificates identify.
  void set_clients(std::vector<certificate_client> clients) {
    requests_.set_clients(std::move(clients));
  }
  [[nodiscard]] audit_writer& audit() noexcept { return audit_; }
  [[nodiscard]] token_table& tokens() noexcept { return tokens_; }
  [[nodiscard]] session_table& sessions() noexcept { return sessions_; }
  [[nodiscard]] sign_in_limit& sign_ins() noexcept { return sign_ins_; }
  /// For the tables of other parts.
  [[nodiscard]] state_database& database() noexcept { return database_; }
  [[nodiscard]] const holdfast::clock& clock() const noexcept { return *clock_; }
  [[nodiscard]] bool uses_https() const noexcept { return https_; }

  /// Reads everything again (SIGHUP). Waits. Throws errors of the database.
  void reload();
  /// Ends the thread, and writes the audit log and the last uses. Returns false if entries of the
  /// audit log could not be written. A second call does nothing.
  bool finish();
  /// Why the state database does not work, for readiness and status; nothing if it does.
  [[nodiscard]] std::optional<std::string> problem() const;

  /// Creates the credentials of the first start, if no usable token exists. `base_url` is that of
  /// the console, without a slash at its end, or empty if there is none. Call it only if every
  /// listener is on loopback or a Unix socket, and show the result on a terminal only. Throws
  /// errors of the database.
  [[nodiscard]] std::optional<first_credentials> create_first_credentials(
      const std::string& base_url);
  /// Uses up the secret of the link. Returns false if it is wrong, late or used.
  [[nodiscard]] bool use_sign_in_link(std::string_view secret);

 private:
  void run();
  [[nodiscard]] std::string make_link_secret();
  void refresh(bool all);
  void store_uses();
  void forget_old_rows();
  bool write_audit();
  template <class Work>
  void attempt(const char* id, Work&& work);
  void set_problem(std::optional<std::string>& part, std::optional<std::string> problem);

  const std::shared_ptr<const holdfast::clock> clock_;
  const std::shared_ptr<const logger> log_;
  const std::shared_ptr<metrics_sink> metrics_;
  const std::chrono::milliseconds refresh_interval_;
  const bool https_;
  state_database database_;
  token_table tokens_{};
  session_table sessions_{};
  sign_in_limit sign_ins_{};
  request_authenticator requests_;
  audit_writer audit_;
  const std::shared_ptr<metrics::gauge> available_;

  std::mutex refresh_mutex_{};
  std::optional<std::int64_t> change_count_{};  // of the tables in memory

  mutable std::mutex mutex_{};
  std::condition_variable wake_{};
  bool stopping_ = false;
  bool audit_waits_ = false;
  std::optional<std::string> read_problem_{};
  std::optional<std::string> write_problem_{};
  std::optional<secret_digest> link_{};
  timestamp link_end_{};
  std::jthread thread_{};  // last: uses all of the above
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
