-- Schedules a ticket, or changes its time and its event.
-- Requires keys.lua, numbers.lua, records.lua, lane.lua, add.lua.
--
-- ARGV: three quotas, ticket, time or empty, delay if the time is empty, key and body of the event.
-- Reply: ok, time, time before or empty; or full (add.lua).
local ticket, key, body = ARGV[4], ARGV[7], ARGV[8]
local expires = ARGV[5] ~= '' and tonumber(ARGV[5]) or now + tonumber(ARGV[6])
local expired_before = call('ZSCORE', EXPIRY, ticket)
if not expired_before then
  local full = over_quota(1, #body)
  if full then return full end
end
call('ZADD', EXPIRY, decimal(expires), ticket)
call('HSET', TICKETS, ticket, #key .. ':' .. key .. body)
if first_score(EXPIRY) == expires then wake() end
return {'ok', decimal(expires), expired_before and decimal(tonumber(expired_before)) or ''}
