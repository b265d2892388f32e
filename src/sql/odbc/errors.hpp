#pragma once

/// \file
/// Converts diagnostics of ODBC drivers to holdfast::error. Does not need the driver manager.

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include "sql/call_deadline.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sql::odbc {

/// A diagnostic record.
struct diagnostic {
  std::string state{};  ///< the SQLSTATE that the driver chose
  long native = 0;      ///< the error number of the database
  std::string text{};
};

struct failure_context {
  dialect_id dialect = dialect_id::unknown;
  bool lost = false;  ///< the connection is dead
  loss on_loss = loss::harmless;
  std::string secret{};  ///< a text that contains it is not shown
};

/// Converts the first record that is more than a warning. Drivers differ in their SQLSTATEs, so the
/// number of the database counts first, and for SQLite also the text.
[[nodiscard]] error to_error(const std::vector<diagnostic>& records,
                             const failure_context& context);
/// Converts a failure to connect.
[[nodiscard]] error could_not_connect(const std::vector<diagnostic>& records,
                                      const std::string& secret);
[[nodiscard]] error timed_out(std::chrono::milliseconds limit, loss on_loss);

}  // namespace HOLDFAST_NAMESPACE::detail::sql::odbc
