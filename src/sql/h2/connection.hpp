#pragma once

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::sql {

struct h2_options {
  std::string host = "127.0.0.1";
  unsigned port = 5435;
  /// A path below the server's base directory. Settings may follow: `mem:x;DB_CLOSE_DELAY=-1`
  std::string database{};
  std::string user{};
  /// Sent in clear text: H2's PostgreSQL port does not support TLS.
  std::string password{};
  std::chrono::milliseconds connect_timeout{5'000};     ///< see postgres_options
  std::chrono::milliseconds statement_timeout{10'000};  ///< see connection::limit
  std::chrono::milliseconds keepalive{30'000};          ///< see pool_options
  /// How long H2 may keep a commit in memory only. H2's default is 500 ms, which a kill -9 loses.
  /// It is a persistent setting of the whole database that only an administrator may change. Other
  /// users go on with the current setting, and the probe of the store reports it.
  std::chrono::milliseconds write_delay{0};
};

/// Connects to an H2 database over the PostgreSQL port of its server (`org.h2.tools.Server -pg`),
/// with libpq.
///
/// That port has a defect: after a failure it goes on with the messages that follow, so a statement
/// that could not be parsed or bound runs the previous one again. Therefore each statement is
/// prepared under a name and in a message of its own, it runs only after that succeeded, and values
/// that H2 would refuse (longer than `h2_longest_value`) are refused here.
///
/// Throws as connect_postgres. A refused user, password or database cannot be told from a lost
/// connection, because H2 just closes the connection.
[[nodiscard]] HOLDFAST_API std::unique_ptr<connection> connect_h2(const h2_options& options);

/// The longest value: bytes, or characters of a text counted in UTF-16.
inline constexpr std::size_t h2_longest_value = 1'048'576;

}  // namespace HOLDFAST_NAMESPACE::detail::sql
