#include "sequence/redis/fence.hpp"

#include <holdfast/error.hpp>

#include <string>

namespace HOLDFAST_NAMESPACE::detail::sequence {

void check_fence(const sequence_fence& fence) {
  const auto refuse = [](const std::string& message) {
    throw error(errc::invalid_argument, message, {.path = "fence"});
  };
  if (std::holds_alternative<std::monostate>(fence))
    refuse(
        "Redis can grant ids twice after a failover; choose a fence: super_blocks (from an SQL "
        "database, no duplicates), clock_fence, wait_fence or no_fence; see docs/sequences.md");
  if (const auto* super = std::get_if<super_blocks>(&fence)) {
    if (!super->source)
      refuse("super_blocks.source is null; set it to the block store of an SQL database");
    if (super->size < 1 || super->size > largest_block)
      refuse("super_blocks.size must be 1 to 2147483648");
  } else if (const auto* clock = std::get_if<clock_fence>(&fence)) {
    if (clock->rate < 1 || clock->rate > 1'000'000)
      refuse("clock_fence.rate must be 1 to 1000000 ids per second");
    if (clock->max_skew.count() < 0 || clock->max_skew > std::chrono::hours(24))
      refuse("clock_fence.max_skew must be 0 to 24 hours");
  } else if (const auto* wait = std::get_if<wait_fence>(&fence)) {
    if (wait->replicas == 0 && !wait->on_disk)
      refuse("wait_fence.replicas is 0; set it to 1 or more, or use no_fence");
    if (wait->longest.count() < 1)
      refuse("wait_fence.longest must be positive: with 0, Redis waits without a limit");
  }
}

std::string fence_definition(const sequence_fence& fence) {
  if (std::holds_alternative<super_blocks>(fence)) return "fence=super";
  if (const auto* clock = std::get_if<clock_fence>(&fence))
    return "fence=clock rate=" + std::to_string(clock->rate) +
           " origin=" + std::to_string(clock->origin.time_since_epoch().count()) +
           " max_skew=" + std::to_string(clock->max_skew.count());
  if (const auto* wait = std::get_if<wait_fence>(&fence))
    return "fence=wait replicas=" + std::to_string(wait->replicas) +
           " on_disk=" + (wait->on_disk ? "yes" : "no");
  return "fence=none";
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
