#pragma once

/// \file
/// The text of the scripts that take in work, lock and look.

#include <string_view>

namespace HOLDFAST_NAMESPACE::outboxes {

/// Adds events. `items` is a list of {id, key, due, body}.
inline constexpr std::string_view lua_add = R"lua(
local function over_quota(quota, fresh, bytes)
  local events, size, overdue = tonumber(quota[1]), tonumber(quota[2]), tonumber(quota[3])
  if events > 0 then
    local used = call('HLEN', ENTRIES) + call('HLEN', TICKETS)
    if used + fresh > events then return {'full', 'events', F(used), F(events)} end
  end
  if size > 0 then
    local used = meta_number('bytes')
    if used + bytes > size then return {'full', 'bytes', F(used), F(size)} end
  end
  if overdue > 0 then
    local first = first_score(PENDING)
    if first and now - first > overdue then return {'full', 'overdue', F(now - first), F(overdue)} end
  end
end
local function find_known(items, window)
  local ids, known = {}, {}
  for i, item in ipairs(items) do ids[i] = item.id end
  local have = call('HMGET', ENTRIES, unpack(ids))
  local marks = window > 0 and call('ZMSCORE', DONE, unpack(ids)) or {}
  local seen, fresh, bytes = {}, 0, 0
  for i, id in ipairs(ids) do
    if have[i] or seen[id] or (marks[i] and tonumber(marks[i]) > now - window) then
      known[i] = true
    else
      seen[id] = true
      fresh = fresh + 1
      bytes = bytes + #items[i].body
    end
  end
  return known, fresh, bytes
end
local function add_all(items, known)
  local keys, wanted = {}, {}
  for i, item in ipairs(items) do
    if not known[i] and item.key ~= '' and not wanted[item.key] then wanted[item.key] = true; keys[#keys + 1] = item.key end
  end
  local heads = {}
  if #keys > 0 then
    local found = call('HMGET', HEADS, unpack(keys))
    for i, key in ipairs(keys) do heads[key] = found[i] end
  end
  local sequence = last_sequence()
  local before = first_score(PENDING)
  local earliest
  local entries, pending, claims, new_heads, followers, done = {}, {}, {}, {}, {}, {}
  for i, item in ipairs(items) do
    if known[i] then
      done[i] = '0'
      count('duplicates', 1)
    else
      done[i] = '1'
      sequence = sequence + 1
      local entry = '{"v":1,"id":"' .. item.id .. '",' .. item.body .. ',"createdAt":' .. F(now) .. ',"seq":' .. F(sequence) .. '}'
      entries[#entries + 1] = item.id; entries[#entries + 1] = entry
      count('bytes', #entry)
      count('published', 1)
      if item.key ~= '' and heads[item.key] then
        followers[#followers + 1] = 0
        followers[#followers + 1] = item.key .. '\0' .. string.format('%016.0f%015.0f', sequence, item.due) .. item.id
      else
        if item.key ~= '' then
          heads[item.key] = item.id
          new_heads[#new_heads + 1] = item.key; new_heads[#new_heads + 1] = item.id
          claims[#claims + 1] = item.id; claims[#claims + 1] = '0:0:0:0:0:0:' .. item.key
        end
        pending[#pending + 1] = F(item.due); pending[#pending + 1] = item.id
        if not earliest or item.due < earliest then earliest = item.due end
      end
    end
  end
  if #entries > 0 then
    call('HSET', ENTRIES, unpack(entries))
    call('HSET', META, 'seq', F(sequence))
  end
  if #pending > 0 then call('ZADD', PENDING, unpack(pending)) end
  if #claims > 0 then call('HSET', CLAIMS, unpack(claims)) end
  if #new_heads > 0 then call('HSET', HEADS, unpack(new_heads)) end
  if #followers > 0 then call('ZADD', FOLLOWERS, unpack(followers)) end
  if earliest and (not before or earliest < before) then mark() end
  return table.concat(done)
end
)lua";

/// ARGV: three quotas, window, then for each event: id, key, delay, body. Reply: ok, a text with 1 (added) or 0 (known) for each; or full.
inline constexpr std::string_view lua_publish = R"lua(
local window = tonumber(ARGV[4])
local items = {}
for i = 5, #ARGV, 4 do
  items[#items + 1] = {id = ARGV[i], key = ARGV[i + 1], due = now + tonumber(ARGV[i + 2]), body = ARGV[i + 3]}
end
local known, fresh, bytes = find_known(items, window)
if fresh > 0 then
  local full = over_quota(ARGV, fresh, bytes)
  if full then return full end
end
local done = add_all(items, known)
write_counts()
return {'ok', done}
)lua";

/// ARGV: three quotas, ticket, time or empty, delay, key, body. Reply: ok, time, time before or empty.
inline constexpr std::string_view lua_schedule = R"lua(
local ticket, key, body = ARGV[4], ARGV[7], ARGV[8]
local due = ARGV[5] ~= '' and tonumber(ARGV[5]) or now + tonumber(ARGV[6])
local before = call('ZSCORE', EXPIRY, ticket)
if not before then
  local full = over_quota(ARGV, 1, #body)
  if full then return full end
end
call('ZADD', EXPIRY, F(due), ticket)
call('HSET', TICKETS, ticket, #key .. ':' .. key .. body)
if first_score(EXPIRY) == due then mark() end
return {'ok', F(due), before and F(tonumber(before)) or ''}
)lua";

inline constexpr std::string_view lua_cancel = R"lua(
if call('ZREM', EXPIRY, ARGV[1]) == 1 then
  call('HDEL', TICKETS, ARGV[1])
  return 'cancelled'
end
if call('ZSCORE', DONE, 't:' .. ARGV[1]) then return 'fired' end
return 'unknown'
)lua";

/// ARGV: most, window, limit. Reply: how many, until the next one or empty. The id is the UUID (version 5) of ticket and time.
inline constexpr std::string_view lua_drain = R"lua(
local most, window, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local due = call('ZRANGEBYSCORE', EXPIRY, '-inf', F(now), 'WITHSCORES', 'LIMIT', 0, most)
if #due == 0 then return {0, until_first(EXPIRY)} end
local space = '\107\167\184\18\157\173\17\209\128\180\0\192\79\212\48\200'
local tickets, items, fired = {}, {}, {}
for i = 1, #due, 2 do tickets[#tickets + 1] = due[i] end
local texts = call('HMGET', TICKETS, unpack(tickets))
for i, ticket in ipairs(tickets) do
  if texts[i] then
    local hex = redis.sha1hex(space .. ticket .. ':' .. F(tonumber(due[2 * i])))
    local variant = string.format('%x', tonumber(string.sub(hex, 17, 17), 16) % 4 + 8)
    local id = string.sub(hex, 1, 8) .. '-' .. string.sub(hex, 9, 12) .. '-5' .. string.sub(hex, 14, 16) .. '-' .. variant ..
      string.sub(hex, 18, 20) .. '-' .. string.sub(hex, 21, 32)
    -- What nobody can read becomes an event, too: a claim will meet it, and park it with the reason.
    local length, rest = string.match(texts[i], '^(%d+):(.*)$')
    local size = tonumber(length)
    if not size or size > #rest then size, rest = 0, texts[i] end
    items[#items + 1] = {id = id, key = string.sub(rest, 1, size), due = now, body = string.sub(rest, size + 1)}
  end
  fired[#fired + 1] = F(now); fired[#fired + 1] = 't:' .. ticket
end
call('ZREM', EXPIRY, unpack(tickets))
call('HDEL', TICKETS, unpack(tickets))
if #items > 0 then add_all(items, (find_known(items, window))) end
count('fired', #tickets)
if window > 0 then call('ZADD', DONE, unpack(fired)) end
trim(window, limit)
write_counts()
return {#tickets, until_first(EXPIRY)}
)lua";

/// ARGV: owner, time to live. Reply: held, fence, holder, remaining.
inline constexpr std::string_view lua_lock = R"lua(
local owner, ttl = ARGV[1], ARGV[2]
local value = call('GET', LOCK)
if value then
  local holder, fence = string.match(value, '^(.*)|(%d+)$')
  if holder ~= owner then return {0, fence or '0', holder or value, call('PTTL', LOCK)} end
  call('PEXPIRE', LOCK, ttl)
  return {1, fence, owner, tonumber(ttl)}
end
local fence = F(next_number('fence'))
call('SET', LOCK, owner .. '|' .. fence, 'PX', ttl)
return {1, fence, owner, tonumber(ttl)}
)lua";

inline constexpr std::string_view lua_renew = R"lua(
local owner, ttl = ARGV[1], ARGV[2]
local value = call('GET', LOCK)
if not value then return {0, '0', '', 0} end
local holder, fence = string.match(value, '^(.*)|(%d+)$')
if holder ~= owner then return {0, fence or '0', holder or value, call('PTTL', LOCK)} end
call('PEXPIRE', LOCK, ttl)
return {1, fence, owner, tonumber(ttl)}
)lua";

inline constexpr std::string_view lua_unlock = R"lua(
if not holds_lock(ARGV[1]) then return 0 end
call('DEL', LOCK)
return 1
)lua";

/// KEYS from 14 on: the data. ARGV: three quotas, window, limit, once, fence, once key, number of conditions, of writes, of events, then
/// conditions (kind, key index, field, value), writes (kind, key index, field, value), events (id, key, delay, body).
/// Everything is checked before anything is written: Redis takes nothing back.
inline constexpr std::string_view lua_commit = R"lua(
local window, limit, once, fence, once_key = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], ARGV[7], ARGV[8]
local conditions, writes, events = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
if once ~= '' then
  local when = call('ZSCORE', DONE, 'e:' .. once)
  if when and tonumber(when) > now - window then return {'applied'} end
  if fence ~= '0' and not held(once, once_key, fence, true) then return {'stale'} end
end
local function kind_of(key) return call('TYPE', key).ok end
local function value_of(key, field)
  local kind = kind_of(key)
  if kind == 'none' then return nil end
  if kind ~= (field == '' and 'string' or 'hash') then return nil, key end
  local value
  if field == '' then value = call('GET', key) else value = call('HGET', key, field) end
  return value or nil
end
local at = 12
for i = 1, conditions do
  local what, key, field, value = ARGV[at], KEYS[tonumber(ARGV[at + 1])], ARGV[at + 2], ARGV[at + 3]
  at = at + 4
  local holds
  if what == 'exists' then holds = call('EXISTS', key) == 1
  elseif what == 'absent' then holds = call('EXISTS', key) == 0
  else
    local found, wrong = value_of(key, field)
    if wrong then return {'wrong', key} end
    if what == 'equals' then holds = found == value else holds = found == nil end
  end
  if not holds then return {'failed', i - 1} end
end
local first_write = at
for _ = 1, writes do
  local what, key, field = ARGV[at], KEYS[tonumber(ARGV[at + 1])], ARGV[at + 2]
  at = at + 4
  local kind = kind_of(key)
  if kind ~= 'none' and what ~= 'erase' then
    local in_hash = what == 'set_field' or what == 'erase_field' or what == 'add_to_field'
    if kind ~= (in_hash and 'hash' or 'string') then return {'wrong', key} end
    if what == 'add' or what == 'add_to_field' then
      local found = value_of(key, what == 'add' and '' or field)
      -- As Redis writes numbers, and no other way: with leading zeros INCRBY would fail in the middle.
      if found and (#found > 15 or (found ~= '0' and not string.match(found, '^-?[1-9]%d*$'))) then return {'number', key} end
    end
  end
end
local items = {}
for _ = 1, events do
  items[#items + 1] = {id = ARGV[at], key = ARGV[at + 1], due = now + tonumber(ARGV[at + 2]), body = ARGV[at + 3]}
  at = at + 4
end
local known, fresh_count, bytes = {}, 0, 0
if events > 0 then known, fresh_count, bytes = find_known(items, window) end
if fresh_count > 0 then
  local full = over_quota(ARGV, fresh_count, bytes)
  if full then return full end
end
at = first_write
for _ = 1, writes do
  local what, key, field, value = ARGV[at], KEYS[tonumber(ARGV[at + 1])], ARGV[at + 2], ARGV[at + 3]
  at = at + 4
  if what == 'set' then call('SET', key, value)
  elseif what == 'erase' then call('DEL', key)
  elseif what == 'set_field' then call('HSET', key, field, value)
  elseif what == 'erase_field' then call('HDEL', key, field)
  elseif what == 'add' then call('INCRBY', key, value)
  else call('HINCRBY', key, field, value) end
end
local done = ''
if events > 0 then done = add_all(items, known) end
if once ~= '' then
  call('ZADD', DONE, F(now), 'e:' .. once)
  trim(window, limit)
end
write_counts()
return {'done', done}
)lua";

inline constexpr std::string_view lua_stats = R"lua(
local names = {'bytes', 'paused', 'published', 'duplicates', 'claims', 'acked', 'retried', 'parkings', 'stale', 'fired', 'orphans'}
local values = call('HMGET', META, unpack(names))
local first = math.min(first_score(PENDING) or now, first_score(EXPIRY) or now)
local reply = {call('HLEN', ENTRIES), call('ZCARD', PENDING), call('ZCARD', FOLLOWERS), call('ZCARD', PARKED), call('HLEN', TICKETS),
  call('ZCARD', DONE), F(math.max(now - first, 0))}
for i = 1, #names do reply[#reply + 1] = F(whole(values[i]) or 0) end
return reply
)lua";

/// ARGV: for each event: id, key. Reply: now, then for each: claim, score, parked since, head of its key, last error (empty for none).
inline constexpr std::string_view lua_look = R"lua(
local reply = {F(now)}
for i = 1, #ARGV, 2 do
  local id, key = ARGV[i], ARGV[i + 1]
  local claim = call('HGET', CLAIMS, id) or ''
  if key == '' then key = string.match(claim, '^%d+:%d+:%d+:%d+:%d+:%d+:(.*)$') or '' end
  reply[#reply + 1] = claim
  reply[#reply + 1] = call('ZSCORE', PENDING, id) or ''
  reply[#reply + 1] = call('ZSCORE', PARKED, id) or ''
  reply[#reply + 1] = key ~= '' and call('HGET', HEADS, key) or ''
  reply[#reply + 1] = call('HGET', ERRORS, id) or ''
end
return reply
)lua";

/// ARGV: what, then its arguments. One repair at a time, checked again here: what was found may have been in motion. The form of a claim is
/// that of `parse` in lua_places.
inline constexpr std::string_view lua_repair = R"lua(
local what = ARGV[1]
if what == 'pending' or what == 'parked' then
  local id = ARGV[2]
  local place = what == 'pending' and PENDING or PARKED
  if call('HEXISTS', ENTRIES, id) == 1 or not call('ZSCORE', place, id) then return 0 end
  if ARGV[3] == '1' then
    call('ZREM', place, id)
    call('HDEL', CLAIMS, id)
    call('HDEL', ERRORS, id)
  end
  return 1
elseif what == 'follower' then
  local m = ARGV[2]
  if call('HEXISTS', ENTRIES, string.sub(m, -36)) == 1 or not call('ZSCORE', FOLLOWERS, m) then return 0 end
  if ARGV[3] == '1' then call('ZREM', FOLLOWERS, m) end
  return 1
elseif what == 'entry' then
  local id, key = ARGV[2], ARGV[4]
  if call('HEXISTS', ENTRIES, id) == 0 or call('ZSCORE', PENDING, id) or call('ZSCORE', PARKED, id) then return 0 end
  if key ~= '' then
    local at = '0'
    repeat
      local part = call('ZRANGEBYLEX', FOLLOWERS, '[' .. key .. '\0', '(' .. key .. '\1', 'LIMIT', at, 1000)
      for _, m in ipairs(part) do if string.sub(m, -36) == id then return 0 end end
      at = F(tonumber(at) + #part)
    until #part < 1000
  end
  if ARGV[3] == '1' then
    local head = key ~= '' and call('HGET', HEADS, key)
    if head and head ~= id then
      local sequence = next_sequence()
      call('ZADD', FOLLOWERS, 0, key .. '\0' .. string.format('%016.0f%015.0f', sequence, now) .. id)
    else
      if key ~= '' then
        call('HSET', HEADS, key, id)
        if call('HEXISTS', CLAIMS, id) == 0 then call('HSET', CLAIMS, id, '0:0:0:0:0:0:' .. key) end
      end
      call('ZADD', PENDING, F(now), id)
      mark()
    end
  end
  return 1
elseif what == 'key' then
  local key = ARGV[2]
  local head = call('HGET', HEADS, key)
  if head and (call('ZSCORE', PENDING, head) or call('ZSCORE', PARKED, head)) then return 0 end
  local first = call('ZRANGEBYLEX', FOLLOWERS, '[' .. key .. '\0', '(' .. key .. '\1', 'LIMIT', 0, 1)[1]
  if not first then
    if head and ARGV[3] == '1' and call('HEXISTS', ENTRIES, head) == 0 then call('HDEL', HEADS, key) end
    return 0
  end
  if ARGV[3] == '1' then
    local id = string.sub(first, -36)
    call('ZREM', FOLLOWERS, first)
    call('HSET', HEADS, key, id)
    if call('HEXISTS', CLAIMS, id) == 0 then call('HSET', CLAIMS, id, '0:0:0:0:0:0:' .. key) end
    call('ZADD', PENDING, F(now), id)
    mark()
  end
  return 1
elseif what == 'claim' then
  local id, key = ARGV[2], ARGV[4]
  if call('HEXISTS', ENTRIES, id) == 0 then return 0 end
  local claim = call('HGET', CLAIMS, id)
  local t, d, a, r, f, n, k = string.match(claim or '', '^(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(.*)$')
  local good = t and whole(t) and #d <= 9 and #a <= 9 and #r <= 9 and whole(f) and whole(n)
  local pending = call('ZSCORE', PENDING, id)
  local head = key ~= '' and call('HGET', HEADS, key)
  -- A claim agrees with its entry, or with the head of its key. In the second case the entry is wrong, and a worker parks it.
  if good and (k == key or call('HGET', HEADS, k) == id or not (pending or head == id)) then return 0 end
  -- Those behind another one, and those without a key, have a claim when they were handed out.
  if not claim and (key == '' or not (pending or call('ZSCORE', PARKED, id))) then return 0 end
  if ARGV[3] == '1' then
    local numbers = good and table.concat({t, d, a, r, f, n}, ':') or '0:0:0:0:0:0'
    call('HSET', CLAIMS, id, numbers .. ':' .. key)
    if pending and head and head ~= id then
      call('ZREM', PENDING, id)
      call('ZADD', FOLLOWERS, 0, key .. '\0' .. string.format('%016.0f%015.0f', next_sequence(), now) .. id)
    elseif pending and key ~= '' then
      call('HSET', HEADS, key, id)
    end
  end
  return 1
elseif what == 'meta' then
  local name = ARGV[2]
  local text = call('HGET', META, name)
  if not text or whole(text) then return 0 end
  if ARGV[3] == '1' then
    if name == 'token' or name == 'fence' then next_number(name)
    elseif name == 'seq' then next_sequence()
    else call('HSET', META, name, '0') end
  end
  return 1
end
-- bytes: how far the count is off, known only when nothing changed meanwhile
if call('HGET', META, 'seq') ~= ARGV[4] or call('HGET', META, 'acked') ~= (ARGV[5] ~= '' and ARGV[5]) then return 0 end
if call('HLEN', ENTRIES) ~= tonumber(ARGV[6]) then return 0 end
local off = meta_number('bytes') - tonumber(ARGV[2])
if ARGV[3] == '1' and off ~= 0 then call('HSET', META, 'bytes', ARGV[2]) end
return off
)lua";

}  // namespace HOLDFAST_NAMESPACE::outboxes
