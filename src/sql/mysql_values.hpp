#pragma once

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <span>
#include <vector>

struct st_mysql_bind;
struct st_mysql_stmt;

/// Our values in the binary protocol of MySQL, both ways. Moments are DATETIME(6) in UTC.
namespace HOLDFAST_NAMESPACE::sql::mysql {

/// Parameters of one execution. Text and bytes are not copied: they must live until it is over.
class bound_parameters {
 public:
  bound_parameters();
  bound_parameters(const bound_parameters&) = delete;
  bound_parameters& operator=(const bound_parameters&) = delete;
  ~bound_parameters();

  /// Forgets the last execution; `count` parameters will be added.
  void start(std::size_t count);
  /// Throws errc::invalid_argument when the value is not of its type, errc::out_of_range for a moment before the year 1.
  void add(type declared, const parameter& value);
  /// To the statement, which must have as many.
  void bind_to(st_mysql_stmt& statement);

  [[nodiscard]] std::size_t size() const noexcept;

 private:
  union scalar;
  std::vector<st_mysql_bind> binds_;
  std::vector<scalar> scalars_;
};

/// At most so many bytes on the wire.
[[nodiscard]] std::size_t wire_size(const parameter& value) noexcept;

/// Appends the stored rows of an executed statement. Throws errc::invalid_argument when it has other columns than announced,
/// errc::out_of_range for a number beyond 64 bits, errc::malformed for a date that is none, errc::too_large for more than largest_result.
void read_rows(st_mysql_stmt& statement, std::span<const type> columns, rows& into);

}  // namespace HOLDFAST_NAMESPACE::sql::mysql
