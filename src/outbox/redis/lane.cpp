#include "outbox/redis/lane.hpp"

#include <holdfast/error.hpp>
#include <holdfast/key/redis.hpp>

namespace HOLDFAST_NAMESPACE::detail::outbox {
namespace {

constexpr std::size_t slot_count = 16384;

redis_lane make_lane(const std::string& prefix) {
  const key::redis_prefix valid_prefix(prefix);
  const key::outbox_keys published(valid_prefix);
  redis_lane lane{
      .prefix = prefix,
      .keys = {published.entries(), published.pending(), published.expiry_due(), published.lock(),
               prefix + ":claims", prefix + ":heads", prefix + ":followers", prefix + ":parked",
               prefix + ":done", prefix + ":errors", prefix + ":tickets", prefix + ":meta",
               prefix + ":wake"}};
  for (const auto& key : lane.keys) {
    if (key::redis_slot(key) != valid_prefix.slot())
      throw error(errc::internal, "the key '" + key + "' is not in the slot of its prefix");
  }
  return lane;
}

}  // namespace

std::vector<redis_lane> make_lanes(std::string_view prefix, std::size_t count) {
  const key::redis_prefix valid_prefix(prefix);
  std::vector<redis_lane> lanes;
  if (count == 1) {
    lanes.push_back(make_lane(valid_prefix.text()));
    return lanes;
  }
  const auto tag_end = valid_prefix.text().find('}');
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t salt = 0;; ++salt) {
      auto lane_prefix = valid_prefix.text();
      lane_prefix.insert(tag_end, ":" + std::to_string(i) + "." + std::to_string(salt));
      if (key::redis_slot(lane_prefix) * count / slot_count != i) continue;
      lanes.push_back(make_lane(lane_prefix));
      break;
    }
  }
  return lanes;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
