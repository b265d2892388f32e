#include "outbox/redis_scripts.hpp"

#include "outbox/redis_scripts_plain.hpp"
#include "outbox/redis_scripts_text.hpp"

#include <initializer_list>

namespace HOLDFAST_NAMESPACE::outboxes {
namespace {

redis::script compose(std::string_view flags, std::string_view time, std::initializer_list<std::string_view> parts) {
  std::string text = "#!lua";
  if (!flags.empty()) text.append(" flags=").append(flags);
  text.append("\nlocal time = ").append(time).append("\n");
  for (const auto part : parts) text.append(part);
  return redis::script(std::move(text));
}

constexpr std::string_view drains = "allow-oom";
constexpr std::string_view reads = "no-writes,allow-oom";
constexpr std::string_view takes_in;

}  // namespace

redis_scripts::redis_scripts(std::string_view time)
    : publish(compose(takes_in, time, {lua_publish_plain, lua_common, lua_add, lua_publish})),
      claim(compose(drains, time, {lua_claim_plain, lua_common, lua_places, lua_park_behind, lua_take, lua_claim})),
      extend(compose(drains, time, {lua_common, lua_places, lua_extend})),
      settle(compose(drains, time, {lua_settle_plain, lua_common, lua_places, lua_take, lua_settle})),
      park_followers(compose(drains, time, {lua_common, lua_places, lua_park_behind, lua_park_followers})),
      replay(compose(drains, time, {lua_common, lua_places, lua_replay})),
      discard(compose(drains, time, {lua_common, lua_places, lua_discard})),
      pause(compose(drains, time, {lua_common, lua_pause})),
      schedule(compose(takes_in, time, {lua_common, lua_add, lua_schedule})),
      cancel(compose(drains, time, {lua_common, lua_cancel})),
      drain(compose(drains, time, {lua_common, lua_add, lua_drain})),
      lock(compose(drains, time, {lua_common, lua_lock})),
      renew(compose(drains, time, {lua_common, lua_renew})),
      unlock(compose(drains, time, {lua_common, lua_unlock})),
      commit(compose(takes_in, time, {lua_common, lua_places, lua_add, lua_commit})),
      stats(compose(reads, time, {lua_common, lua_stats})),
      look(compose(reads, time, {lua_common, lua_look})),
      repair(compose(drains, time, {lua_common, lua_repair})) {}

}  // namespace HOLDFAST_NAMESPACE::outboxes
