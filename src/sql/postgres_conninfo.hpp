#pragma once

#include <holdfast/version.hpp>

#include "sql/postgres_connection.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct pg_conn;  // libpq's PGconn

namespace HOLDFAST_NAMESPACE::sql::postgres {

/// What libpq is given to connect with.
class HOLDFAST_API conninfo {
 public:
  conninfo(std::vector<std::pair<const char*, std::string>> words, bool tls_by_default);
  conninfo(const conninfo&) = delete;  // it points into itself
  conninfo& operator=(const conninfo&) = delete;
  ~conninfo();  // wipes the password
  /// Both end with a null pointer, as libpq wants them.
  [[nodiscard]] const char* const* keywords() const noexcept { return keywords_.data(); }
  [[nodiscard]] const char* const* values() const noexcept { return values_.data(); }
  /// Whether sslmode=require was chosen here, and not by the caller.
  [[nodiscard]] bool tls_by_default() const noexcept { return tls_by_default_; }

 private:
  std::vector<std::pair<const char*, std::string>> words_;
  std::vector<const char*> keywords_{};
  std::vector<const char*> values_{};
  bool tls_by_default_;
};

/// A value for a connection string of the form `keyword=value`, quoted.
[[nodiscard]] std::string quoted_value(std::string_view text);

/// How much longer than our own limit the server is allowed: it ends what we gave up waiting for, or a lock queue would fill with it.
inline constexpr std::chrono::milliseconds server_margin{1'000};

/// The caller's string, and what we add: everything about the session travels in the packet that opens it.
/// A server on another machine must be encrypted (sslmode=require) unless the string, PGSSLMODE or a service file chooses a mode.
/// Throws errc::invalid_argument for a string that libpq cannot read or that it would read wrongly, and for one that makes it load an
/// engine of OpenSSL (`sslkey=engine:key`; PGSSLKEY may name one) or write a file, without repeating any of it.
[[nodiscard]] HOLDFAST_API conninfo start_parameters(const postgres_options& options);

/// How an open connection is protected.
[[nodiscard]] transport_kind transport_of(pg_conn* connection);

}  // namespace HOLDFAST_NAMESPACE::sql::postgres
