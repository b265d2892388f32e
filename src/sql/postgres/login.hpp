#pragma once

/// \file
/// What libpq connects with: the caller's connection string, completed with the settings that our
/// sessions need.

#include <holdfast/version.hpp>

#include "sql/postgres/connection.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct pg_conn;  // PGconn of libpq

namespace HOLDFAST_NAMESPACE::detail::sql::postgres {

/// The keywords and values for PQconnectStartParams. Wipes the values when it is destroyed: one of
/// them is the password.
class HOLDFAST_API conninfo {
 public:
  conninfo(std::vector<std::pair<const char*, std::string>> settings, bool tls_by_default);
  conninfo(const conninfo&) = delete;  // values_ points into settings_
  conninfo& operator=(const conninfo&) = delete;
  ~conninfo();
  /// Both arrays end with a null pointer.
  [[nodiscard]] const char* const* keywords() const noexcept { return keywords_.data(); }
  [[nodiscard]] const char* const* values() const noexcept { return values_.data(); }
  /// Whether start_parameters added sslmode=require.
  [[nodiscard]] bool tls_by_default() const noexcept { return tls_by_default_; }

 private:
  std::vector<std::pair<const char*, std::string>> settings_;
  std::vector<const char*> keywords_{};
  std::vector<const char*> values_{};
  bool tls_by_default_;
};

/// Quotes a value for a connection string of the form `keyword=value`.
[[nodiscard]] std::string quoted_value(std::string_view text);

/// The statement_timeout of the server is this much longer than our own limit. The server ends
/// statements that we gave up; otherwise they would pile up in a lock queue.
inline constexpr std::chrono::milliseconds server_margin{1'000};

/// One of the hosts of a connection string. An empty field is left to libpq.
struct target {
  std::string host{};
  std::string address{};  ///< hostaddr
  std::string port{};
  bool must_accept_writes = false;
};

/// What a connection string says about where to connect.
struct connect_plan {
  /// One with empty fields if the string names one host, and if libpq itself has to choose among
  /// several (target_session_attrs=prefer-standby).
  std::vector<target> targets{};
  std::vector<std::string> addresses{};  ///< of the targets, each unlike the others
  /// connect_timeout of the string, PGCONNECT_TIMEOUT or the service file.
  std::optional<std::chrono::milliseconds> timeout{};
};

/// Reads the hosts of a connection string. Does not connect. Throws as start_parameters.
[[nodiscard]] HOLDFAST_API connect_plan plan_connect(const std::string& connection_string);

/// Completes the caller's connection string. All settings of the session are part of the startup
/// packet, so they cost no round trip.
///
/// Requires encryption to other machines (sslmode=require), unless the string, PGSSLMODE or a
/// service file chooses a mode.
///
/// Throws errc::invalid_argument for a string that libpq cannot parse or would misread, and for one
/// that makes libpq load an engine of OpenSSL (`sslkey=engine:key`; PGSSLKEY may name one) or write
/// a file. The message does not repeat any of it.
[[nodiscard]] HOLDFAST_API conninfo start_parameters(const postgres_options& options,
                                                     const target& server = {});

/// How an open connection is protected.
[[nodiscard]] transport_kind transport_of(pg_conn* connection);

}  // namespace HOLDFAST_NAMESPACE::detail::sql::postgres
