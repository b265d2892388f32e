-- Publishes events.
-- Requires keys.lua, publish_fast.lua, numbers.lua, records.lua, lane.lua, add.lua.
--
-- ARGV: three quotas, dedup window, then for each event: id, key, delay, body.
-- Reply: ok, a text with 1 (added) or 0 (duplicate) for each event; or full (add.lua).
local events = {}
for i = 5, #ARGV, 4 do events[#events + 1] = event_at(i) end
local duplicates, new_events, new_bytes = find_duplicates(events, tonumber(ARGV[4]))
if new_events > 0 then
  local full = over_quota(new_events, new_bytes)
  if full then return full end
end
local added = add_events(events, duplicates)
write_counters()
return {'ok', added}
