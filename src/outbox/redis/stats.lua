-- Counts events by state. Requires keys.lua, numbers.lua, lane.lua.
--
-- Reply: events, pending, followers, parked, tickets, remembered ids, milliseconds overdue, then
-- these fields of META.
local fields = {
  'bytes', 'paused', 'published', 'duplicates', 'claims', 'acked', 'retried', 'parkings', 'stale',
  'fired', 'orphans',
}
local values = call('HMGET', META, unpack(fields))
local first_due = math.min(first_score(PENDING) or now, first_score(EXPIRY) or now)
local reply = {
  call('HLEN', ENTRIES),
  call('ZCARD', PENDING),
  call('ZCARD', FOLLOWERS),
  call('ZCARD', PARKED),
  call('HLEN', TICKETS),
  call('ZCARD', DONE),
  decimal(math.max(now - first_due, 0)),
}
for i = 1, #fields do reply[#reply + 1] = decimal(whole_number(values[i]) or 0) end
return reply
