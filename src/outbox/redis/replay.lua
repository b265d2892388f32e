-- Delivers parked events again. A blocking event keeps its position; another one goes behind the
-- events that its key has now.
-- Requires keys.lua, numbers.lua, records.lua, lane.lua, state.lua.
--
-- ARGV: ids. Reply: a text with 1 (was parked) or 0 for each id.
local first_before = first_score(PENDING)
local replayed = {}

local function unpark(id)
  local claim = claim_of(id) or new_claim('')
  local key, replays = claim.key, claim.replays
  claims[id] = new_claim(key)
  claims[id].replays = replays + 1
  mark_changed(id)
  call('HDEL', ERRORS, id)
  local head = key ~= '' and head_of(key)
  if head and head ~= id then
    call('ZADD', FOLLOWERS, 0, follower_member(key, next_sequence(), now, id))
    due_times[id] = nil
  else
    if key ~= '' then set_head(key, id) end
    due_times[id] = now
  end
end

for i, id in ipairs(ARGV) do
  local was_parked = call('ZREM', PARKED, id) == 1
  replayed[i] = was_parked and '1' or '0'
  if was_parked then unpark(id) end
end
write_state()
wake_if_earlier(first_before)
return table.concat(replayed)
