-- Reads the state of events. Requires keys.lua, numbers.lua, records.lua, lane.lua.
--
-- ARGV: for each event: id, key (empty: read it from the claim record). Reply: now, then for each
-- event: claim record, time in PENDING, time in PARKED, id of the head of its key, last error; each
-- is empty if there is none.
local reply = {decimal(now)}
for i = 1, #ARGV, 2 do
  local id, key = ARGV[i], ARGV[i + 1]
  local record = call('HGET', CLAIMS, id) or ''
  if key == '' then key = select(7, string.match(record, CLAIM_PATTERN)) or '' end
  reply[#reply + 1] = record
  reply[#reply + 1] = call('ZSCORE', PENDING, id) or ''
  reply[#reply + 1] = call('ZSCORE', PARKED, id) or ''
  reply[#reply + 1] = key ~= '' and call('HGET', HEADS, key) or ''
  reply[#reply + 1] = call('HGET', ERRORS, id) or ''
end
return reply
