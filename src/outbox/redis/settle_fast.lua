-- Fast path of settle.lua: only acknowledgements, of events without a key, all of them held; and no
-- claim follows. It does the same in fewer steps, or leaves everything to settle.lua. It defines no
-- function: creating one costs time in every call, even if it is not used. Requires keys.lua.
do
  local format, token = string.format, ARGV[1]
  local applies = token ~= '0' and ARGV[4] == '0' and call('EXISTS', HEADS) == 0
  local ids, seen = {}, {}
  for i = 9, #ARGV, 3 do
    local id = ARGV[i + 1]
    if ARGV[i] ~= 'a' or ARGV[i + 2] ~= '' or seen[id] then applies = false; break end
    seen[id] = true
    ids[#ids + 1] = id
  end
  applies = applies and #ids > 0 and #ids <= 1000
  if applies then
    local held_prefix = token .. ':'
    for _, record in ipairs(call('HMGET', CLAIMS, unpack(ids))) do
      if not record or string.sub(record, 1, #held_prefix) ~= held_prefix then
        applies = false
        break
      end
    end
  end
  if applies then
    for _, score in ipairs(call('ZMSCORE', PENDING, unpack(ids))) do
      if not score then applies = false; break end
    end
  end
  if applies then
    local window, now_text = tonumber(ARGV[2]), format('%d', now)
    local bytes, delivered, settled = 0, {}, {}
    for i, id in ipairs(ids) do
      bytes = bytes + call('HSTRLEN', ENTRIES, id)
      delivered[2 * i - 1] = now_text
      delivered[2 * i] = id
      settled[i] = '1'
    end
    call('HDEL', ENTRIES, unpack(ids))
    call('ZREM', PENDING, unpack(ids))
    call('HDEL', CLAIMS, unpack(ids))
    call('HDEL', ERRORS, unpack(ids))
    if window > 0 then call('ZADD', DONE, unpack(delivered)) end
    -- As write_state() and trim_done().
    local marks = call('ZCOUNT', DONE, '(' .. now_text, '+inf')
    if marks > 0 then
      for i, id in ipairs(ids) do delivered[2 * i] = 'e:' .. id end
      call('ZADD', DONE, 'XX', 'LT', unpack(delivered))
      marks = call('ZCOUNT', DONE, '(' .. now_text, '+inf')
    end
    local limit = tonumber(ARGV[3])
    local surplus = call('ZCOUNT', DONE, '-inf', format('%d', now - window))
    if limit > 0 then surplus = math.max(surplus, call('ZCARD', DONE) - marks - limit) end
    if surplus > 0 then call('ZREMRANGEBYRANK', DONE, 0, math.min(surplus, 1000) - 1) end
    -- A counter that is not a number restarts, as in write_counters().
    local sum = bytes > 0 and redis.pcall('HINCRBY', META, 'bytes', -bytes)
    if sum and (type(sum) == 'table' or sum < 0) then call('HSET', META, 'bytes', '0') end
    if type(redis.pcall('HINCRBY', META, 'acked', #ids)) == 'table' then
      call('HSET', META, 'acked', format('%d', #ids))
    end
    return {table.concat(settled), 0, 'empty', '0', '', now_text}
  end
end
