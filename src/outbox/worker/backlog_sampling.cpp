#include "outbox/worker/backlog_sampling.hpp"

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

constexpr std::chrono::seconds sample_interval{5};

}  // namespace

void backlog_sampling::sample(bool force) {
  const auto now = context_.now();
  {
    const std::scoped_lock lock(context_.mutex);
    if (!force && now < next_sample_) return;
    next_sample_ = now + sample_interval;
  }
  const auto stats = context_.outbox.admin().stats();
  context_.metrics.set_backlog(stats);
  const std::scoped_lock lock(context_.mutex);
  stats_ = stats;
}

outbox_stats backlog_sampling::last() const {
  const std::scoped_lock lock(context_.mutex);
  return stats_;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
