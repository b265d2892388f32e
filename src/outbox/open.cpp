#include <holdfast/database.hpp>
#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/outbox/memory.hpp>

#include "sql/database.hpp"

namespace HOLDFAST_NAMESPACE {

outbox database::outbox(outbox_options options) const {
  if (!state_->in_memory()) throw error(errc::unsupported_type, "there is no outbox on this database yet");
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
