-- Reads recurring events of a lane.
-- Requires keys.lua, numbers.lua, lane.lua.
--
-- KEYS[14]: hash: name -> text. KEYS[15]: sorted set: name by the time when it is to be read.
-- ARGV: selection (name, due or all), name, horizon, most.
-- Reply: now, time until the first one is due or empty; then name, time, text of each.
local TEXTS, DUE = KEYS[14], KEYS[15]
local selection, name, horizon, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

-- Another program deleted a part of one. At most 1000 exist.
local function restore_due_times()
  for _, member in ipairs(call('ZRANGE', DUE, 0, -1)) do
    if call('HEXISTS', TEXTS, member) == 0 then call('ZREM', DUE, member) end
  end
  for _, member in ipairs(call('HKEYS', TEXTS)) do
    if not call('ZSCORE', DUE, member) then call('ZADD', DUE, decimal(now), member) end
  end
end

local function select_names()
  if selection == 'name' then return {name} end
  if selection == 'due' then
    if call('HLEN', TEXTS) ~= call('ZCARD', DUE) then restore_due_times() end
    local names = call('ZRANGEBYSCORE', DUE, '-inf', decimal(now), 'LIMIT', 0, most)
    if #names > 0 then return names end
    return call('ZRANGEBYSCORE', DUE, '(' .. decimal(now + horizon), '+inf', 'LIMIT', 0, most)
  end
  local all = call('HKEYS', TEXTS)
  table.sort(all)
  local names = {}
  for _, member in ipairs(all) do
    if member > name and #names < most then names[#names + 1] = member end
  end
  return names
end

local reply = {decimal(now)}
local names = select_names()
reply[2] = time_until_first(DUE)
if #names == 0 then return reply end
local texts = call('HMGET', TEXTS, unpack(names))
for i, member in ipairs(names) do
  if texts[i] then
    reply[#reply + 1] = member
    reply[#reply + 1] = decimal(math.min(tonumber(call('ZSCORE', DUE, member) or now), 2.5e14))
    reply[#reply + 1] = texts[i]
  end
end
return reply
