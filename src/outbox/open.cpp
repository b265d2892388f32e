#include <holdfast/database.hpp>
#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/outbox/memory.hpp>

#include "outbox/checks.hpp"
#include "outbox/sql_open.hpp"
#if HOLDFAST_HAS_REDIS
#include "outbox/redis_backend.hpp"
#endif
#include "sql/database.hpp"

namespace HOLDFAST_NAMESPACE {

outbox database::outbox(outbox_options options) const {
  outboxes::check_options(options);  // before anything is made
  if (state_->pool) {
    auto backend =
        outboxes::open_sql_outbox(state_, {.prefix = options.prefix, .lanes = options.lanes, .create_schema = options.create_schema});
    return holdfast::outbox(std::move(backend), std::move(options), state_->options.log, state_->options.metrics);
  }
#if HOLDFAST_HAS_REDIS
  if (state_->redis) {
    auto backend = std::make_shared<outboxes::redis_backend>(state_->redis, options);
    return holdfast::outbox(std::move(backend), std::move(options), state_->options.log, state_->options.metrics);
  }
#endif
  std::shared_ptr<outbox_backend> backend;
  {
    const std::scoped_lock lock(state_->mutex);
    auto& known = state_->memory_outboxes[options.prefix];
    if (!known) known = make_memory_outbox({.lanes = options.lanes, .clock = state_->options.clock});
    backend = known;
  }
  return holdfast::outbox(std::move(backend), std::move(options), state_->options.log, state_->options.metrics);
}

outbox database::outbox() const { return outbox(outbox_options{}); }

}  // namespace HOLDFAST_NAMESPACE
