// effect_once: applies the effect of a claimed event at most once.
//
// - On SQL, in a transaction of the caller: outbox::effect_once with a join::transaction.
// - On Redis, as a commit: outbox::effect_once with writes. The free function does this for a
//   handler and turns the result into its outcome.

#include <holdfast/outbox.hpp>
#include <holdfast/outbox/effect.hpp>

#include "outbox/state.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE {

commit_status outbox::effect_once(join::transaction& transaction, fence token,
                                  const claimed_event& event) const {
  return state_->joining_backend().apply_once(transaction, event.lane, token, event.event.id,
                                              event.event.key, state_->terms());
}

committed outbox::effect_once(fence token, const claimed_event& event,
                              std::vector<commit_write> writes,
                              std::vector<holdfast::event> events) const {
  state_->check_lane(event.lane);
  return commit_in(event.lane, {.writes = std::move(writes),
                                .events = std::move(events),
                                .once = event.event.id,
                                .fence = token,
                                .once_key = event.event.key});
}

outcome effect_once(const delivery& delivery, std::vector<commit_write> writes,
                    std::vector<event> events) {
  const auto result = delivery.outbox().effect_once(delivery.fence(), delivery.claimed(),
                                                    std::move(writes), std::move(events));
  switch (result.status) {
    case commit_status::done:
    case commit_status::applied:
      break;
    case commit_status::stale:
      return outcome::retry("the lease was lost before the effect was applied");
    case commit_status::condition_failed:
      return outcome::retry("a condition does not hold");
  }
  // The effect is written, but perhaps less safely than requested. The next delivery finds it
  // applied.
  for (const auto& receipt : result.receipts) {
    if (receipt.safe()) continue;
    return outcome::ambiguous(receipt.problem ? receipt.problem->message()
                                              : "an event of the effect is in doubt");
  }
  return outcome::done();
}

}  // namespace HOLDFAST_NAMESPACE
