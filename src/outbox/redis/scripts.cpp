#include "outbox/redis/scripts.hpp"

#include "outbox/redis/add_lua.hpp"
#include "outbox/redis/cancel_lua.hpp"
#include "outbox/redis/claim_fast_lua.hpp"
#include "outbox/redis/claim_lua.hpp"
#include "outbox/redis/commit_lua.hpp"
#include "outbox/redis/discard_lua.hpp"
#include "outbox/redis/drain_lua.hpp"
#include "outbox/redis/extend_lua.hpp"
#include "outbox/redis/hand_out_lua.hpp"
#include "outbox/redis/inspect_lua.hpp"
#include "outbox/redis/keys_lua.hpp"
#include "outbox/redis/lane_lua.hpp"
#include "outbox/redis/lock_lua.hpp"
#include "outbox/redis/numbers_lua.hpp"
#include "outbox/redis/park_followers_lua.hpp"
#include "outbox/redis/park_followers_of_lua.hpp"
#include "outbox/redis/pause_lua.hpp"
#include "outbox/redis/publish_fast_lua.hpp"
#include "outbox/redis/publish_lua.hpp"
#include "outbox/redis/read_recurrences_lua.hpp"
#include "outbox/redis/records_lua.hpp"
#include "outbox/redis/repair_lua.hpp"
#include "outbox/redis/replay_lua.hpp"
#include "outbox/redis/schedule_lua.hpp"
#include "outbox/redis/settle_fast_lua.hpp"
#include "outbox/redis/settle_lua.hpp"
#include "outbox/redis/state_lua.hpp"
#include "outbox/redis/stats_lua.hpp"
#include "outbox/redis/ticket_lua.hpp"
#include "outbox/redis/unlock_lua.hpp"
#include "outbox/redis/update_recurrence_lua.hpp"
#include "outbox/redis/workers_lua.hpp"

#include <initializer_list>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {
namespace {

/// Flags of EVAL scripts.
constexpr std::string_view refused_when_full = "";
constexpr std::string_view allowed_when_full = "allow-oom";
constexpr std::string_view read_only_script = "no-writes,allow-oom";

redis::script join_files(std::string_view flags, std::string_view time,
                         std::initializer_list<std::string_view> files) {
  std::string text = "#!lua";
  if (!flags.empty()) text.append(" flags=").append(flags);
  text.append("\nlocal time = ").append(time).append("\n");
  for (const auto file : files) text.append(file);
  return redis::script(std::move(text));
}

}  // namespace

// tests/house/check_lua compares each list with the files that the last one requires.
redis_scripts::redis_scripts(std::string_view time)
    : publish(join_files(
          refused_when_full, time,
          {keys_lua, publish_fast_lua, numbers_lua, records_lua, lane_lua, add_lua, publish_lua})),
      commit(join_files(
          refused_when_full, time,
          {keys_lua, numbers_lua, records_lua, lane_lua, state_lua, add_lua, commit_lua})),
      claim(join_files(allowed_when_full, time,
                       {keys_lua, claim_fast_lua, numbers_lua, records_lua, lane_lua, state_lua,
                        park_followers_of_lua, hand_out_lua, claim_lua})),
      extend(join_files(allowed_when_full, time,
                        {keys_lua, numbers_lua, records_lua, lane_lua, state_lua, extend_lua})),
      settle(join_files(allowed_when_full, time,
                        {keys_lua, settle_fast_lua, numbers_lua, records_lua, lane_lua, state_lua,
                         hand_out_lua, settle_lua})),
      park_followers(join_files(allowed_when_full, time,
                                {keys_lua, numbers_lua, records_lua, lane_lua, state_lua,
                                 park_followers_of_lua, park_followers_lua})),
      replay(join_files(allowed_when_full, time,
                        {keys_lua, numbers_lua, records_lua, lane_lua, state_lua, replay_lua})),
      discard(join_files(allowed_when_full, time,
                         {keys_lua, numbers_lua, records_lua, lane_lua, state_lua, discard_lua})),
      pause(join_files(allowed_when_full, time, {keys_lua, numbers_lua, lane_lua, pause_lua})),
      schedule(join_files(refused_when_full, time,
                          {keys_lua, numbers_lua, records_lua, lane_lua, add_lua, schedule_lua})),
      cancel(join_files(allowed_when_full, time, {keys_lua, cancel_lua})),
      drain(join_files(
          allowed_when_full, time,
          {keys_lua, numbers_lua, records_lua, lane_lua, add_lua, ticket_lua, drain_lua})),
      lock(join_files(allowed_when_full, time, {keys_lua, numbers_lua, lane_lua, lock_lua})),
      unlock(join_files(allowed_when_full, time, {keys_lua, numbers_lua, lane_lua, unlock_lua})),
      workers(join_files(allowed_when_full, time, {keys_lua, workers_lua})),
      read_recurrences(join_files(allowed_when_full, time,
                                  {keys_lua, numbers_lua, lane_lua, read_recurrences_lua})),
      update_recurrence(join_files(
          allowed_when_full, time,
          {keys_lua, numbers_lua, records_lua, lane_lua, add_lua, update_recurrence_lua})),
      stats(join_files(read_only_script, time, {keys_lua, numbers_lua, lane_lua, stats_lua})),
      inspect(join_files(read_only_script, time,
                         {keys_lua, numbers_lua, records_lua, lane_lua, inspect_lua})),
      repair(join_files(
          allowed_when_full, time,
          {keys_lua, numbers_lua, records_lua, lane_lua, add_lua, ticket_lua, repair_lua})) {}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
