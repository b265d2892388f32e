#include "sql/database.hpp"

#include "sql/connect.hpp"

namespace HOLDFAST_NAMESPACE {

sql::dialect_id database::state::ask_dialect() {
  {
    const std::scoped_lock lock(mutex);
    if (dialect) return *dialect;
  }
  const auto lease = pool->reader();
  const auto found = options.resolve_dialect ? options.resolve_dialect(*lease) : lease->dialect();
  const std::scoped_lock lock(mutex);
  dialect = found;
  return found;
}

void database::state::say(std::string_view line) const noexcept {
  try {
    if (options.log) options.log(line);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // A log that fails must not break what it tells of.
  }
}

database::database(sql::connection_factory connect, database_options options) : state_(std::make_shared<state>()) {
  if (!connect) throw error(errc::invalid_argument, "the connection factory is empty");
  state_->options = std::move(options);
  if (!state_->options.clock) state_->options.clock = system_clock();
  state_->pool = std::make_unique<sql::pool>(std::move(connect), state_->options.pool, state_->options.log);
}

sql::dialect_id database::dialect() const { return state_->pool ? state_->ask_dialect() : sql::dialect_id::unknown; }

database open(std::string_view url, database_options options) {
  if (url == "memory:") {
    auto shared = std::make_shared<database::state>();
    shared->options = std::move(options);
    if (!shared->options.clock) shared->options.clock = system_clock();
    return database(std::move(shared));
  }
  auto connect = sql::connector(url, options);
  return {std::move(connect), std::move(options)};
}

}  // namespace HOLDFAST_NAMESPACE
