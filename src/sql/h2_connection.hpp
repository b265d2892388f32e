#pragma once

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE::sql {

struct h2_options {
  std::string host = "127.0.0.1";
  unsigned port = 5435;
  std::string database{};  ///< below the server's base directory; settings may follow: `mem:x;DB_CLOSE_DELAY=-1`
  std::string user{};
  std::string password{};                               ///< travels in clear: H2's PostgreSQL port knows no TLS
  std::chrono::milliseconds connect_timeout{5'000};     ///< see postgres_options
  std::chrono::milliseconds statement_timeout{10'000};  ///< see connection::limit
  /// How long H2 may keep what it acknowledged in memory only. Its own default is 500 ms, which a kill -9 loses. It is a setting of the whole
  /// database, stays, and only an administrator may change it: who may not goes on with what is set, and the probe says so.
  std::chrono::milliseconds write_delay{0};
};

/// Connects to an H2 database over the PostgreSQL port of its server (`org.h2.tools.Server -pg`), with libpq.
///
/// That port has a habit that decides how it may be used: after a failure it goes on with what was sent behind it, so that a statement that
/// could not be parsed or bound runs the one before it once more. So every statement is parsed under a name and alone, is run only when
/// that succeeded, and nothing is bound that could be refused: values above `h2_longest_value` are refused here.
///
/// Throws as connect_postgres; a refused user, password or database is told from a lost connection by nobody: H2 just hangs up.
[[nodiscard]] HOLDFAST_API std::unique_ptr<connection> connect_h2(const h2_options& options);

/// Characters (UTF-16) of a text, and bytes, in one value.
inline constexpr std::size_t h2_longest_value = 1'048'576;

}  // namespace HOLDFAST_NAMESPACE::sql
