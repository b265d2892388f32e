// Construction and properties of class outbox. Its operations are in publish.cpp, tickets.cpp,
// commit.cpp, effect.cpp and deliver.cpp.

#include <holdfast/outbox.hpp>

#include "outbox/state.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE {

payload_store::~payload_store() = default;

outbox::outbox(std::shared_ptr<outbox_backend> backend, outbox_options options, log_sink log,
               std::shared_ptr<metrics_sink> metrics)
    : state_(std::make_shared<detail::outbox::outbox_state>(std::move(backend), std::move(options),
                                                            std::move(log), std::move(metrics))) {}

std::optional<outbox_record> outbox::find(std::string_view id) const { return state_->find(id); }

outbox_admin outbox::admin() const noexcept { return outbox_admin(state_); }

std::size_t outbox::lanes() const noexcept { return state_->lanes(); }

std::size_t outbox::lane_of(std::string_view key_or_id) const noexcept {
  return state_->lane_of(key_or_id);
}

const outbox_options& outbox::options() const noexcept { return state_->options; }

const std::shared_ptr<outbox_backend>& outbox::backend() const noexcept {
  return state_->shared_backend;
}

const std::shared_ptr<isolated_metrics>& outbox::metrics() const noexcept {
  return state_->metrics;
}

}  // namespace HOLDFAST_NAMESPACE
