#pragma once

#include <holdfast/error.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <string>
#include <vector>

/// What a failure of an ODBC driver means to a caller. Needs no driver manager.
namespace HOLDFAST_NAMESPACE::sql::odbc {

/// One record of diagnostics.
struct diagnostic {
  std::string state{};  ///< SQLSTATE, in the driver's opinion
  long native = 0;      ///< the database's own number
  std::string text{};
};

struct circumstances {
  dialect_id dialect = dialect_id::unknown;
  bool lost = false;      ///< the connection is dead
  bool in_doubt = false;  ///< it may have taken effect when no answer came
  std::string secret{};   ///< no text that contains it is passed on
};

/// The first record that says more than a warning counts. Drivers differ in their SQLSTATEs, so the database's own numbers and, for SQLite,
/// its words are looked at, too.
[[nodiscard]] error to_error(const std::vector<diagnostic>& said, const circumstances& around);
/// Failures while connecting.
[[nodiscard]] error could_not_connect(const std::vector<diagnostic>& said, const std::string& secret);
[[nodiscard]] error out_of_time(std::chrono::milliseconds limit, bool in_doubt);

}  // namespace HOLDFAST_NAMESPACE::sql::odbc
