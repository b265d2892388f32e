#include "sql/mysql/statements.hpp"

#include <mysql.h>

#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

const prepared_statements::entry& prepared_statements::get(std::string_view text,
                                                           mysql::session& session,
                                                           const call_deadline& deadline) {
  if (const auto* cached = entries_.find(text)) return *cached;
  auto handle = session.prepare(text, deadline);
  const std::size_t parameters = mysql_stmt_param_count(handle.get());
  // A statement with more parameters than the limit is kept alone.
  while (!entries_.empty() &&
         (entries_.size() >= limit || parameters_ + parameters > parameter_limit))
    close(entries_.remove_oldest(), session, deadline);
  const auto& added =
      entries_.add(std::string(text), {std::move(handle), parameters, effect_of(text)});
  parameters_ += parameters;
  return added;
}

void prepared_statements::forget(std::string_view text, mysql::session& session,
                                 const call_deadline& deadline) noexcept {
  if (auto statement = entries_.remove(text)) close(std::move(*statement), session, deadline);
}

void prepared_statements::close(entry statement, mysql::session& session,
                                const call_deadline& deadline) noexcept {
  parameters_ -= statement.parameters;
  session.close(std::move(statement.handle), deadline);
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
