-- Deletes parked events.
-- Requires keys.lua, numbers.lua, records.lua, lane.lua, state.lua.
--
-- ARGV: ids. Reply: a text with 1 (was parked) or 0 for each id.
local first_before = first_score(PENDING)
local discarded = {}
for i, id in ipairs(ARGV) do
  local was_parked = call('ZREM', PARKED, id) == 1
  discarded[i] = was_parked and '1' or '0'
  if was_parked then remove_and_promote(id) end
end
write_state()
wake_if_earlier(first_before)
return table.concat(discarded)
