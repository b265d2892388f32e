-- Parks events behind a parked head.
-- Requires keys.lua, numbers.lua, records.lua, lane.lua, state.lua, park_followers_of.lua.
--
-- ARGV: key, most. Reply: how many followers remain.
followers_per_read = tonumber(ARGV[2])
local remaining = park_followers_of(ARGV[1], followers_per_read)
write_state()
return remaining
