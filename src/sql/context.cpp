#include "sql/context.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::sql {

context::context(connection_factory connect, context_options settings)
    : options(std::move(settings)), pool(std::move(connect), options.pool, options.log) {}

dialect_id context::dialect() {
  {
    const std::scoped_lock lock(mutex_);
    if (dialect_) return *dialect_;
  }
  // The lock is not held here, because the server may be slow.
  const auto connection = pool.acquire_reader("database.dialect");
  const auto resolved =
      options.resolve_dialect ? options.resolve_dialect(*connection) : connection->dialect();
  const std::scoped_lock lock(mutex_);
  dialect_ = resolved;
  return resolved;
}

void context::warn(std::string_view line) const noexcept {
  options.log->write(log_level::warning, line);
}

}  // namespace HOLDFAST_NAMESPACE::sql
