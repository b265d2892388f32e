// database::outbox: opens an outbox on the backend of the database.

#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/outbox/memory.hpp>

#include "database/database.hpp"
#include "outbox/checks.hpp"
#include "outbox/default_prefix.hpp"
#include "outbox/sql/backend.hpp"
#if HOLDFAST_HAS_REDIS
#include "outbox/redis/backend.hpp"
#endif

namespace HOLDFAST_NAMESPACE {

namespace {

/// Returns the backend of this prefix. All open outboxes of a prefix share one, so that a publisher
/// wakes the workers that wait.
std::shared_ptr<outbox_backend> shared_sql_outbox(database::state& state,
                                                  const outbox_options& options) {
  {
    const std::scoped_lock lock(state.mutex);
    const auto backend = state.sql_outboxes[options.prefix].lock();
    if (backend && backend->lanes() == options.lanes) {
      if (options.create_schema) backend->allow_create();
      if (options.allow_unsafe) backend->allow_unsafe();
      return backend;
    }
  }
  // Opened without the lock, because it may read a file. With another number of lanes than an open
  // outbox, the first operation of one of them fails.
  auto opened = detail::outbox::open_sql_outbox(state.sql, {.prefix = options.prefix,
                                                            .lanes = options.lanes,
                                                            .create_schema = options.create_schema,
                                                            .allow_unsafe = options.allow_unsafe});
  const std::scoped_lock lock(state.mutex);
  auto& shared = state.sql_outboxes[options.prefix];
  if (const auto other = shared.lock(); other && other->lanes() == options.lanes) return other;
  shared = opened;
  return opened;
}

std::shared_ptr<outbox_backend> shared_memory_outbox(database::state& state,
                                                     const outbox_options& options) {
  const std::scoped_lock lock(state.mutex);
  const auto prefix =
      options.prefix.empty() ? std::string(detail::outbox::default_prefix) : options.prefix;
  auto& backend = state.memory_outboxes[prefix];
  if (!backend)
    backend = make_memory_outbox({.lanes = options.lanes, .clock = state.options.clock});
  return backend;
}

std::shared_ptr<outbox_backend> open_backend(database::state& state,
                                             const outbox_options& options) {
  if (state.sql) return shared_sql_outbox(state, options);
#if HOLDFAST_HAS_REDIS
  if (state.redis)
    return std::make_shared<detail::outbox::redis_backend>(state.redis, options,
                                                           detail::outbox::server_time, state.log);
#endif
  return shared_memory_outbox(state, options);
}

}  // namespace

outbox database::outbox(outbox_options options) const {
  detail::outbox::check_options(options);  // before a backend is opened
  auto backend = open_backend(*state_, options);
  return holdfast::outbox(std::move(backend), std::move(options), state_->options.log,
                          state_->options.metrics);
}

outbox database::outbox() const { return outbox(outbox_options{}); }

}  // namespace HOLDFAST_NAMESPACE
