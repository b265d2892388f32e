#pragma once

/// \file
/// A connection to one server: its socket, its login and its reply reader.

#include <holdfast/redis.hpp>

#include "net/byte_stream.hpp"
#include "net/tls.hpp"
#include "redis/batch.hpp"
#include "redis/plaintext_check.hpp"
#include "redis/reply_reader.hpp"
#include "redis/settings.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::redis {

using net::steady;

/// The commands that a new connection starts with, and how to read the replies. No input or output.
struct HOLDFAST_API login {
  explicit login(const settings& configured);
  /// Throws if the server refused the login, if it is not a Redis server, or if its role is not the
  /// expected one. A user without the permission for ROLE is not refused.
  void check(std::span<const reply> replies, const std::string& address) const;

  std::vector<command> commands{};
  expected_role role;
};

/// Thread-safety: none.
class connection {
 public:
  /// Resolves the host; `set_up` does the rest. `first_contact` is true if no connection to this
  /// server was successful before. Throws errc::unavailable (transient).
  connection(const std::string& address, const settings& configured, const net::tls_context* tls,
             steady::time_point deadline, bool first_contact);
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  /// Continues to connect and log in, without blocking. Returns true when the connection is ready
  /// for commands. Throws errc::unavailable or errc::timeout (transient), or errc::permission.
  bool set_up();
  [[nodiscard]] bool ready() const noexcept { return login_ == nullptr; }
  /// While it is not ready: adds the sockets to poll before the next call of `set_up`.
  void add_polls(std::vector<pollfd>& polls) const;
  /// While it is not ready: when to call `set_up` even if no socket is ready.
  [[nodiscard]] steady::time_point wake_at() const noexcept;

  /// Sends as much of a batch as the socket accepts, until the deadline. Returns the events to poll
  /// for before it is called again; 0 when everything is sent.
  [[nodiscard]] short send(batch& requests, steady::time_point deadline);
  /// Reads the replies that have arrived. Returns the events to poll for before it is called again;
  /// 0 when the batch is complete. Throws errc::unavailable (transient) if the connection is lost,
  /// or what reply_reader throws.
  [[nodiscard]] short receive(batch& requests, steady::time_point deadline);

  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  [[nodiscard]] int descriptor() const noexcept { return stream_.descriptor(); }
  [[nodiscard]] known_scripts& scripts() noexcept { return scripts_; }

  /// Returns true if the connection may serve another batch: it is ready and no reply is missing.
  [[nodiscard]] bool reusable() const noexcept { return reusable_; }
  void discard() noexcept { reusable_ = false; }
  /// Returns true if a reusable connection is still open and has received nothing unexpected.
  [[nodiscard]] bool is_alive() noexcept { return reusable_ && stream_.is_idle(); }
  /// Returns true at the first call. The pool counts each connection once.
  [[nodiscard]] bool first_use() noexcept { return std::exchange(unused_, false); }
  /// See byte_stream::abandon.
  void abandon() noexcept { stream_.abandon(); }

 private:
  /// The login as a batch, until it is accepted.
  struct pending_login {
    pending_login(const settings& configured, const std::string& address, known_scripts& scripts);
    login steps;
    pipeline requests;
    batch sent;
    bool connected = false;  // the socket, and TLS
    short events = 0;        // to poll for, once connected
  };

  [[nodiscard]] short receive_login();
  [[noreturn]] void throw_closed() const;

  std::string address_;
  bool first_contact_;
  bool received_ = false;        // any byte
  steady::time_point deadline_;  // of set_up
  net::byte_stream stream_;
  reply_reader reader_;
  known_scripts scripts_{};
  bool reusable_ = false;
  bool unused_ = true;
  std::unique_ptr<pending_login> login_;
  std::optional<plaintext_check> plaintext_check_{};  // during the handshake of TLS
};

}  // namespace HOLDFAST_NAMESPACE::detail::redis
