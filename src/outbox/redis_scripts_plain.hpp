#pragma once

/// \file
/// The short ways: most calls are about events without a key, seen for the first time, of which none is lost or known. Each of these parts
/// stands before the script that can do everything; it does the same in fewer steps, or nothing at all and leaves it to what follows.
/// A function costs a script time whenever it runs, even if it is never called: here are none.

#include <string_view>

namespace HOLDFAST_NAMESPACE::outboxes {

/// ARGV as for lua_publish. No quota, no key, no id that was seen before.
inline constexpr std::string_view lua_publish_plain = R"lua(
do
  local call, format, entries, meta = redis.call, string.format, KEYS[1], KEYS[12]
  local now = math.floor((time[1] * 1000000 + time[2]) / 1000)
  local plain = ARGV[1] == '0' and ARGV[2] == '0' and ARGV[3] == '0'
  local ids, seen = {}, {}
  for i = 5, #ARGV, 4 do
    local id = ARGV[i]
    if seen[id] or ARGV[i + 1] ~= '' then plain = false end
    seen[id] = true
    ids[#ids + 1] = id
  end
  if plain then
    for _, entry in ipairs(call('HMGET', entries, unpack(ids))) do if entry then plain = false end end
  end
  if plain and tonumber(ARGV[4]) > 0 then
    for _, mark in ipairs(call('ZMSCORE', KEYS[9], unpack(ids))) do if mark then plain = false end end
  end
  local facts = plain and call('HMGET', meta, 'seq', 'bytes', 'published')
  if plain then
    -- Digits, as scripts write them: what follows begins again where they are not.
    for _, fact in ipairs(facts) do
      if fact and (not string.find(fact, '^%d+$') or tonumber(fact) >= 9e15) then plain = false end
    end
  end
  if plain then
    local before = tonumber(call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2])
    local sequence, bytes, published = tonumber(facts[1] or 0), tonumber(facts[2] or 0), tonumber(facts[3] or 0)
    local at = format('%d', now)
    local middle = ',"createdAt":' .. at .. ',"seq":'
    local added, pending, done, earliest = {}, {}, {}, nil
    for i, id in ipairs(ids) do
      local delay, due = ARGV[4 * i + 3], at
      if delay ~= '0' then due = format('%d', now + delay) end
      local entry = '{"v":1,"id":"' .. id .. '",' .. ARGV[4 * i + 4] .. middle .. format('%d', sequence + i) .. '}'
      bytes = bytes + #entry
      added[2 * i - 1] = id; added[2 * i] = entry
      pending[2 * i - 1] = due; pending[2 * i] = id
      done[i] = '1'
      local score = now + delay
      if not earliest or score < earliest then earliest = score end
    end
    call('HSET', entries, unpack(added))
    call('HSET', meta, 'seq', format('%d', sequence + #ids), 'bytes', format('%d', bytes), 'published', format('%d', published + #ids))
    call('ZADD', KEYS[2], unpack(pending))
    if (not before or earliest < before) and call('EXISTS', KEYS[13]) == 0 then call('RPUSH', KEYS[13], '1') end
    return {'ok', table.concat(done)}
  end
end
)lua";

/// ARGV as for lua_claim. Nothing is due, or events without a key that nobody claimed before.
inline constexpr std::string_view lua_claim_plain = R"lua(
do
  local call, format, meta, owner = redis.call, string.format, KEYS[12], ARGV[5]
  local us = time[1] * 1000000 + time[2]
  local now = format('%d', math.floor(us / 1000))
  local facts = call('HMGET', meta, 'paused', 'token', 'claims')
  local plain = facts[1] ~= '1' and call('EXISTS', KEYS[6]) == 0
  for i = 2, 3 do
    local fact = facts[i]
    if fact and (not string.find(fact, '^%d+$') or tonumber(fact) >= 9e15) then plain = false end
  end
  if plain and owner ~= '' then plain = string.sub(call('GET', KEYS[4]) or '', 1, #owner + 1) == owner .. '|' end
  local due = plain and call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, ARGV[1])
  local out = {'empty', '0', '', now}
  if plain and #due > 0 then
    plain = #due <= 1000
    local left, full = tonumber(ARGV[3]), false
    local token = format('%d', math.max((facts[2] or 0) + 1, us))
    local claim, deadline = token .. ':1:0:0:0:1:', format('%d', now + ARGV[4])
    local claimed, pending, n = {}, {}, 0
    for from = 1, #due, 100 do
      if full or not plain then break end
      local ids = {unpack(due, from, math.min(from + 99, #due))}
      local texts, claims = call('HMGET', KEYS[1], unpack(ids)), call('HMGET', KEYS[5], unpack(ids))
      for i, id in ipairs(ids) do
        local text = texts[i]
        if not text or claims[i] then plain = false; break end
        if n > 0 and #text > left then full = true; break end
        left = left - #text
        n = n + 1
        claimed[2 * n - 1] = id; claimed[2 * n] = claim
        pending[2 * n - 1] = deadline; pending[2 * n] = id
        out[3 * n + 2] = text; out[3 * n + 3] = '1:0:0:' .. id; out[3 * n + 4] = ''
      end
    end
    if plain then
      call('HSET', meta, 'token', token, 'claims', format('%d', (facts[3] or 0) + n))
      call('HSET', KEYS[5], unpack(claimed))
      call('ZADD', KEYS[2], unpack(pending))
      out[1] = 'some'
      out[2] = token
    end
  end
  if plain then
    local next = call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
    if next then out[3] = format('%d', math.min(math.max(next - now, 0), 3.2e11)) end
    return out
  end
end
)lua";

/// ARGV as for lua_settle. Only acknowledgements of events without a key, all of which are held.
inline constexpr std::string_view lua_settle_plain = R"lua(
do
  local call, format, token = redis.call, string.format, ARGV[1]
  local plain = token ~= '0' and ARGV[4] == '0' and call('EXISTS', KEYS[6]) == 0
  local ids, seen = {}, {}
  for i = 9, #ARGV, 3 do
    local id = ARGV[i + 1]
    if ARGV[i] ~= 'a' or ARGV[i + 2] ~= '' or seen[id] then plain = false; break end
    seen[id] = true
    ids[#ids + 1] = id
  end
  plain = plain and #ids > 0 and #ids <= 1000
  if plain then
    local mine = token .. ':'
    for _, claim in ipairs(call('HMGET', KEYS[5], unpack(ids))) do
      if not claim or string.sub(claim, 1, #mine) ~= mine then plain = false; break end
    end
  end
  if plain then
    for _, due in ipairs(call('ZMSCORE', KEYS[2], unpack(ids))) do if not due then plain = false; break end end
  end
  if plain then
    local now = math.floor((time[1] * 1000000 + time[2]) / 1000)
    local window, at = tonumber(ARGV[2]), format('%d', now)
    local bytes, remember, done = 0, {}, {}
    for i, id in ipairs(ids) do
      bytes = bytes + call('HSTRLEN', KEYS[1], id)
      remember[2 * i - 1] = at; remember[2 * i] = id
      done[i] = '1'
    end
    call('HDEL', KEYS[1], unpack(ids))
    call('ZREM', KEYS[2], unpack(ids))
    call('HDEL', KEYS[5], unpack(ids))
    call('HDEL', KEYS[10], unpack(ids))
    if window > 0 then call('ZADD', KEYS[9], unpack(remember)) end
    local old = math.max(call('ZCOUNT', KEYS[9], '-inf', format('%d', now - window)), call('ZCARD', KEYS[9]) - ARGV[3])
    if old > 0 then call('ZREMRANGEBYRANK', KEYS[9], 0, math.min(old, 1000) - 1) end
    -- What is no number begins again, as in write_counts.
    local sum = bytes > 0 and redis.pcall('HINCRBY', KEYS[12], 'bytes', -bytes)
    if sum and (type(sum) == 'table' or sum < 0) then call('HSET', KEYS[12], 'bytes', '0') end
    if type(redis.pcall('HINCRBY', KEYS[12], 'acked', #ids)) == 'table' then call('HSET', KEYS[12], 'acked', format('%d', #ids)) end
    return {table.concat(done), 0, 'empty', '0', '', at}
  end
end
)lua";

}  // namespace HOLDFAST_NAMESPACE::outboxes
