#pragma once

/// \file
/// Parameters and values in the binary protocol of MySQL. A time is a DATETIME(6) in UTC.

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <cstddef>
#include <span>
#include <vector>

struct st_mysql_bind;
struct st_mysql_stmt;

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

/// The parameters of one execution. Text and bytes are not copied: they must live until the
/// execution is over.
class bindings {
 public:
  bindings();
  bindings(const bindings&) = delete;
  bindings& operator=(const bindings&) = delete;
  ~bindings();

  /// Removes all parameters. At most `count` may be added then.
  void start(std::size_t count);
  /// Throws errc::invalid_argument if the value does not have the declared type, errc::out_of_range
  /// for a time before the year 1.
  void add(type declared, const parameter& value);
  /// Throws errc::invalid_argument if the statement has another number of parameters.
  void bind_to(st_mysql_stmt& statement);

 private:
  union scalar;
  std::vector<st_mysql_bind> binds_;
  std::vector<scalar> scalars_;  // memory of the integers and times
};

/// An upper bound of the bytes that a value needs in a packet.
[[nodiscard]] std::size_t wire_size(const parameter& value) noexcept;

/// Appends the stored rows of an executed statement and frees them. Throws errc::invalid_argument
/// if the statement returned another number of columns, errc::out_of_range for an integer that does
/// not fit 64 bits, errc::too_large for more than largest_result. An invalid date is NULL.
void read_rows(st_mysql_stmt& statement, std::span<const type> columns, rows& result);

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
