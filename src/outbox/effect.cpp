#include <holdfast/outbox/effect.hpp>

#include <utility>

namespace HOLDFAST_NAMESPACE {

outcome effect_once(const delivery& what, std::vector<commit_write> writes, std::vector<event> events) {
  const auto result = what.from().effect_once(what.fence(), what.claimed(), std::move(writes), std::move(events));
  switch (result.status) {
    case commit_status::done:
    case commit_status::applied:
      break;
    case commit_status::stale:
      return outcome::retry("the lease was lost before its effect was applied");
    case commit_status::condition_failed:
      return outcome::retry("a condition does not hold");
  }
  // Written, but perhaps not as safely as was asked for: the next delivery finds it applied.
  for (const auto& each : result.receipts) {
    if (!each.safe()) return outcome::ambiguous(each.problem ? each.problem->message() : "an event of the effect is in doubt");
  }
  return outcome::done();
}

}  // namespace HOLDFAST_NAMESPACE
