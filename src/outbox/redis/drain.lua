-- Turns expired tickets into their events.
-- Requires keys.lua, numbers.lua, records.lua, lane.lua, add.lua, ticket.lua.
--
-- ARGV: most, dedup window, dedup limit. Reply: number of tickets, time until the next one expires
-- or empty.
local most, window, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

-- The UUID (version 5) of `ticket:time`; see expiry_event_id() in holdfast/outbox/event.hpp.
local UUID_NAMESPACE = '\107\167\184\18\157\173\17\209\128\180\0\192\79\212\48\200'
local function expiry_event_id(ticket, expires)
  local hex = redis.sha1hex(UUID_NAMESPACE .. ticket .. ':' .. decimal(expires))
  local variant = string.format('%x', tonumber(string.sub(hex, 17, 17), 16) % 4 + 8)
  return string.sub(hex, 1, 8) .. '-' .. string.sub(hex, 9, 12) .. '-' ..
    '5' .. string.sub(hex, 14, 16) .. '-' .. variant .. string.sub(hex, 18, 20) .. '-' ..
    string.sub(hex, 21, 32)
end

local due = call('ZRANGEBYSCORE', EXPIRY, '-inf', decimal(now), 'WITHSCORES', 'LIMIT', 0, most)
if #due == 0 then return {0, time_until_first(EXPIRY)} end
local tickets, times, events, fired = {}, {}, {}, {}
for i = 1, #due, 2 do
  tickets[#tickets + 1] = due[i]
  times[#times + 1] = tonumber(due[i + 1])
end
local texts = call('HMGET', TICKETS, unpack(tickets))
for i, ticket in ipairs(tickets) do
  if texts[i] then
    local key, body = parse_ticket(texts[i])
    local id = expiry_event_id(ticket, times[i])
    events[#events + 1] = {id = id, key = key, due = now, body = body}
  end
  fired[#fired + 1] = decimal(now)
  fired[#fired + 1] = 't:' .. ticket
end
call('ZREM', EXPIRY, unpack(tickets))
call('HDEL', TICKETS, unpack(tickets))
if #events > 0 then add_events(events, (find_duplicates(events, window))) end
add_to_counter('fired', #tickets)
if window > 0 then call('ZADD', DONE, unpack(fired)) end
trim_done(window, limit)
write_counters()
return {#tickets, time_until_first(EXPIRY)}
