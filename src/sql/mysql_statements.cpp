#include "sql/mysql_statements.hpp"

#include <mysql.h>

#include <utility>

namespace HOLDFAST_NAMESPACE::sql::mysql {

const prepared_statements::entry& prepared_statements::get(std::string_view text, link& on, time_limit limit) {
  if (const auto found = by_text_.find(text); found != by_text_.end()) {
    by_use_.splice(by_use_.begin(), by_use_, found->second);
    return *found->second;
  }
  auto handle = on.prepare(text, limit);
  const std::size_t parameters = mysql_stmt_param_count(handle.get());
  // One larger than the bound gets in as well, alone.
  while (!by_use_.empty() && (by_use_.size() >= most || parameters_ + parameters > most_parameters)) drop_last(on, limit);
  by_use_.push_front({std::string(text), std::move(handle), parameters, effect_of(text)});
  try {
    by_text_.emplace(by_use_.front().text, by_use_.begin());
  } catch (...) {
    by_use_.pop_front();
    throw;
  }
  parameters_ += parameters;
  return by_use_.front();
}

void prepared_statements::forget(std::string_view text, link& on, time_limit limit) noexcept {
  const auto found = by_text_.find(text);
  if (found == by_text_.end()) return;
  by_use_.splice(by_use_.end(), by_use_, found->second);
  drop_last(on, limit);
}

void prepared_statements::drop_last(link& on, time_limit limit) noexcept {
  auto& last = by_use_.back();
  by_text_.erase(last.text);
  parameters_ -= last.parameters;
  on.close(std::move(last.handle), limit);
  by_use_.pop_back();
}

}  // namespace HOLDFAST_NAMESPACE::sql::mysql
