#include "serve/gateway/upstream_attempts.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

upstream& upstream_attempts::begin() {
  auto chosen = servers_.choose(tried_);
  if (!chosen) {
    // A retry may go to a server that failed before.
    tried_ = 0;
    chosen = servers_.choose(tried_);
  }
  server_ = chosen.value_or(0);  // a group has at least one server
  tried_ |= std::uint64_t{1} << server_;
  ++attempts_;
  if (retry_ != nullptr && attempts_ == 1) retry_->record_call();
  return servers_.server(server_);
}

bool upstream_attempts::has_other() const noexcept {
  return (~tried_ & ((std::uint64_t{1} << servers_.size()) - 1)) != 0;
}

std::optional<std::chrono::microseconds> upstream_attempts::pause_after(
    const upstream_failure& reason, bool sent) {
  constexpr std::chrono::microseconds at_once{0};
  // Nothing was sent: another server can be asked whatever the method is.
  if (!sent && reason.unreachable && has_other()) return at_once;
  if (retry_ == nullptr || !repeatable_) return std::nullopt;
  if (!sent && has_other()) return at_once;
  const auto next = retry_->next(attempts_);
  if (next.refused_by != failover::retry_plan::refusal::none) return std::nullopt;
  return has_other() ? at_once : next.pause;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
