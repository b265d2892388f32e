-- Fast path of claim.lua: the lane has no keys, and what is due was never claimed, or nothing is
-- due; and a script wrote the numbers in META. It does the same in fewer steps, or leaves
-- everything to claim.lua. It defines no function: creating one costs time in every call, even if
-- it is not used. Requires keys.lua.
local latest_publishing -- for claim.lua
do
  local format, owner = string.format, ARGV[5]
  local now_text = format('%d', now)
  local meta = call('HMGET', META, 'paused', 'token', 'claims', 'clock')
  local applies = meta[1] ~= '1' and call('EXISTS', HEADS) == 0 and (meta[2] or not meta[3])
  for i = 2, 4 do
    local text = meta[i]
    if text and (not string.find(text, '^%d+$') or tonumber(text) >= 9e15) then applies = false end
  end
  latest_publishing = tonumber(meta[4] or 0) or 0
  if latest_publishing > now then applies = false end
  if applies and owner ~= '' then
    applies = string.sub(call('GET', LOCK) or '', 1, #owner + 1) == owner .. '|'
  end
  local due = applies and call('ZRANGEBYSCORE', PENDING, '-inf', now_text, 'LIMIT', 0, ARGV[1])
  local reply = {'empty', '0', '', now_text}
  if applies and #due > 0 then
    applies = #due <= 1000
    local bytes_left, is_full = tonumber(ARGV[3]), false
    local token = format('%d', math.max((meta[2] or 0) + 1, now_us))
    -- The claim record of a first delivery without a key; see records.lua.
    local record, deadline = token .. ':1:0:0:0:1:', format('%d', now + ARGV[4])
    local records, scores, count = {}, {}, 0
    for first = 1, #due, 100 do
      if is_full or not applies then break end
      local ids = {unpack(due, first, math.min(first + 99, #due))}
      local entries = call('HMGET', ENTRIES, unpack(ids))
      local old_records = call('HMGET', CLAIMS, unpack(ids))
      for i, id in ipairs(ids) do
        local entry = entries[i]
        if not entry or old_records[i] then applies = false; break end
        if count > 0 and #entry > bytes_left then is_full = true; break end
        bytes_left = bytes_left - #entry
        count = count + 1
        records[2 * count - 1] = id
        records[2 * count] = record
        scores[2 * count - 1] = deadline
        scores[2 * count] = id
        reply[3 * count + 2] = entry
        reply[3 * count + 3] = '1:0:0:' .. id
        reply[3 * count + 4] = ''
      end
    end
    if applies then
      call('HSET', META, 'token', token, 'claims', format('%d', (meta[3] or 0) + count))
      call('HSET', CLAIMS, unpack(records))
      call('ZADD', PENDING, unpack(scores))
      reply[1] = 'some'
      reply[2] = token
    end
  end
  if applies then
    local next_due = call('ZRANGE', PENDING, 0, 0, 'WITHSCORES')[2]
    if next_due then reply[3] = format('%d', math.min(math.max(next_due - now, 0), 3.2e11)) end
    return reply
  end
end
