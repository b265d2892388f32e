-- Replaces, adds or removes a recurring event and publishes events, if the stored text is the
-- expected one.
-- Requires keys.lua, numbers.lua, records.lua, lane.lua, add.lua.
--
-- KEYS[14]: hash: name -> text. KEYS[15]: sorted set: name by the time when it is to be read.
-- ARGV: dedup window, most recurring events, name, 1 if there is an expected text, that text, 1 if
-- there is a new text, that text, its time; then id, key, delay and body of each event.
-- Reply: done, conflict or full. A call that is repeated is done.
local TEXTS, DUE = KEYS[14], KEYS[15]
local window, most, name = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local expected = ARGV[4] == '1' and ARGV[5]
local replacement = ARGV[6] == '1' and ARGV[7]

local stored = call('HGET', TEXTS, name)
if stored ~= expected then return stored == replacement and 'done' or 'conflict' end
if replacement then
  if not stored and call('HLEN', TEXTS) >= most then return 'full' end
  call('HSET', TEXTS, name, replacement)
  call('ZADD', DUE, ARGV[8], name)
else
  call('HDEL', TEXTS, name)
  call('ZREM', DUE, name)
end
local events = {}
for index = 9, #ARGV, 4 do events[#events + 1] = event_at(index) end
if #events > 0 then
  add_events(events, (find_duplicates(events, window)))
  write_counters()
end
return 'done'
