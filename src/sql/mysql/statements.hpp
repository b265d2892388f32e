#pragma once

#include <holdfast/version.hpp>

#include "sql/mysql/effect.hpp"
#include "sql/mysql/session.hpp"
#include "sql/statement_cache.hpp"

#include <cstddef>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

/// The prepared statements of one connection. Limited in number and in the sum of their parameters,
/// because they cost the server memory: the statement of a batch has thousands of parameters. The
/// least recently used are closed first.
class prepared_statements {
 public:
  static constexpr std::size_t limit = 256;
  static constexpr std::size_t parameter_limit = 16'384;

  struct entry {
    statement_handle handle;
    std::size_t parameters;
    mysql::effect effect;
  };

  /// Returns the statement and prepares it if necessary. The result is valid until the next call.
  const entry& get(std::string_view text, mysql::session& session, const call_deadline& deadline);
  /// Closes a statement that the server does not know any more.
  void forget(std::string_view text, mysql::session& session,
              const call_deadline& deadline) noexcept;

 private:
  void close(entry statement, mysql::session& session, const call_deadline& deadline) noexcept;

  statement_cache<entry> entries_{};
  std::size_t parameters_ = 0;  // of all entries
};

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
