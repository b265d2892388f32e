#pragma once

#include <holdfast/version.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::sql {

/// A connection whose pool can find out that new connections lead to another server. A server that
/// hangs, or the way to it, does not say that it was replaced: a call would wait for its time
/// limit.
class watched_session {
 public:
  /// The session, as its server names it. Does not change.
  [[nodiscard]] virtual std::string session_name() const = 0;

  /// Whether the server of this connection has a session of that name. Nothing if that does not
  /// tell whether it was replaced: behind a pooler, or on a server that does not accept writes.
  [[nodiscard]] virtual std::optional<bool> has_session(const std::string& name) = 0;

  /// What is between this connection and its server: "a pooler" shares sessions of the server, "a
  /// proxy" passes the traffic on, from another port. Empty: nothing that can be noticed.
  [[nodiscard]] virtual std::string_view intermediary() = 0;

  /// Ends the call that another thread runs, as if the connection was lost. Thread-safe.
  virtual void interrupt() noexcept = 0;

 protected:
  watched_session() = default;
  watched_session(const watched_session&) = default;
  watched_session& operator=(const watched_session&) = default;
  ~watched_session() = default;
};

}  // namespace HOLDFAST_NAMESPACE::detail::sql
