#include "outbox/redis_lane.hpp"

#include <holdfast/error.hpp>
#include <holdfast/key/redis.hpp>

namespace HOLDFAST_NAMESPACE::outboxes {
namespace {

constexpr std::size_t slots = 16384;

redis_lane make_lane(const std::string& prefix) {
  const key::redis_prefix valid(prefix);
  const key::outbox_keys seed(valid);
  redis_lane lane{
      .prefix = prefix,
      .keys = {seed.entries(), seed.pending(), seed.expiry_due(), seed.lock(), prefix + ":claims", prefix + ":heads", prefix + ":followers",
               prefix + ":parked", prefix + ":done", prefix + ":errors", prefix + ":tickets", prefix + ":meta", prefix + ":wake"}};
  for (const auto& one : lane.keys) {
    if (key::redis_slot(one) != valid.slot()) {
      throw error(errc::internal, "the key '" + one + "' is not in the slot of its prefix");
    }
  }
  return lane;
}

}  // namespace

std::vector<redis_lane> make_lanes(std::string_view prefix, std::size_t lanes) {
  const key::redis_prefix valid(prefix);
  std::vector<redis_lane> result;
  if (lanes == 1) {
    result.push_back(make_lane(valid.text()));
    return result;
  }
  const auto close = valid.text().find('}');
  for (std::size_t i = 0; i < lanes; ++i) {
    for (std::size_t salt = 0;; ++salt) {
      auto text = valid.text();
      text.insert(close, ":" + std::to_string(i) + "." + std::to_string(salt));
      if (key::redis_slot(text) * lanes / slots != i) continue;
      result.push_back(make_lane(text));
      break;
    }
  }
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::outboxes
