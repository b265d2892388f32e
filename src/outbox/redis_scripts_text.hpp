#pragma once

/// \file
/// The text of the scripts, in parts. A lane's keys come first, always in this order (redis_lane.hpp makes them).

#include <string_view>

namespace HOLDFAST_NAMESPACE::outboxes {

/// Names of the keys, the time, small helpers.
inline constexpr std::string_view lua_common = R"lua(
local ENTRIES, PENDING, EXPIRY, LOCK, CLAIMS, HEADS, FOLLOWERS = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local PARKED, DONE, ERRORS, TICKETS, META, WAKE = KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13]
local call = redis.call
local us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(us / 1000)
local function F(x) return string.format('%d', x) end
local counts = {}
local function count(name, by) counts[name] = (counts[name] or 0) + by end
-- A number that a script wrote, or nil: other programs can write to the store. Below 9e15 each whole number has a next one.
local function whole(text)
  if not text or #text > 16 or not string.match(text, '^%d+$') then return nil end
  local n = tonumber(text)
  return n < 9e15 and n or nil
end
local function meta_number(name) return whole(call('HGET', META, name)) or 0 end
local function write_counts()
  for name, by in pairs(counts) do
    if by ~= 0 then
      local sum = redis.pcall('HINCRBY', META, name, F(by))
      -- What is no number begins again, and fsck counts what can be counted.
      if type(sum) == 'table' or sum < 0 then call('HSET', META, name, F(math.max(by, 0))) end
    end
  end
end
local function first_score(key)
  local first = call('ZRANGE', key, 0, 0, 'WITHSCORES')
  return first[2] and tonumber(first[2])
end
local function mark() if call('EXISTS', WAKE) == 0 then call('RPUSH', WAKE, '1') end end
local function mark_if_earlier(before)
  local first = first_score(PENDING)
  if first and (not before or first < before) then mark() end
end
-- The largest token or fence that is noted anywhere. Of a claim it is the first number.
local function largest_noted()
  local largest = math.max(meta_number('token'), meta_number('fence'))
  local cursor = '0'
  repeat
    local part = call('HSCAN', CLAIMS, cursor, 'COUNT', 1000)
    cursor = part[1]
    for i = 2, #part[2], 2 do largest = math.max(largest, whole(string.match(part[2][i], '^(%d+):')) or 0) end
  until cursor == '0'
  return largest
end
-- Tokens and fences never go back: where the last one cannot be read, the next one is larger than all that are noted, and than the clock.
local function next_number(name)
  local text = call('HGET', META, name)
  local last = text and (whole(text) or largest_noted()) or 0
  local n = math.max(last + 1, us)
  call('HSET', META, name, F(n))
  return n
end
-- Sequences count from 1. Where the last one cannot be read they go on from the clock, which is larger than all before.
local function last_sequence()
  local text = call('HGET', META, 'seq')
  return text and (whole(text) or us) or 0
end
local function next_sequence()
  local n = last_sequence() + 1
  call('HSET', META, 'seq', F(n))
  return n
end
-- At most ten years: a time that no script wrote may be infinite.
local function until_first(key)
  local first = first_score(key)
  return first and F(math.min(math.max(first - now, 0), 3.2e11)) or ''
end
local function holds_lock(owner)
  local value = call('GET', LOCK)
  return value and string.sub(value, 1, #owner + 1) == owner .. '|'
end
local function trim(window, limit)
  local cutoff = now - window
  local size = call('ZCARD', DONE)
  local expired = call('ZCOUNT', DONE, '-inf', F(cutoff))
  local n = math.min(1000, math.max(expired, size - limit))
  if n > 0 then call('ZREMRANGEBYRANK', DONE, 0, n - 1) end
end
)lua";

/// The places of events: who is at the head of its key, who follows, who is claimed. Changes are kept here and written by `flush`.
/// A claim is `token:deliveries:attempts:replays:first failure:run:key`; of an event that was parked and whose followers are to be parked,
/// too, `run` is the token of whoever parked it, who may say so again when the answer was lost. Until they are, it stays in `pending`: whoever
/// claims next goes on with it. A follower is its key, NUL, 16 digits of its sequence, 15 of its time, its id; all with score 0, so that they
/// are in the order of their bytes. A claim that no script wrote is taken for none, with the key of its entry: the one place where a script
/// reads an entry.
inline constexpr std::string_view lua_places = R"lua(
local states, scores, heads, queues = {}, {}, {}, {}
local touched, touched_ids, changed_keys, changed_key_list = {}, {}, {}, {}
local dead, dead_ids, gone = {}, {}, {}
local chunk = 1
local function fresh(key) return {t = '0', d = 0, a = 0, r = 0, f = '0', n = 0, k = key} end
local function key_of_entry(id)
  local read, entry = pcall(cjson.decode, call('HGET', ENTRIES, id) or '')
  return read and type(entry) == 'table' and type(entry.key) == 'string' and entry.key or ''
end
local function parse(text, id)
  if not text then return false end
  local t, d, a, r, f, n, k = string.match(text, '^(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(.*)$')
  if not t or not whole(t) or #d > 9 or #a > 9 or #r > 9 or not whole(f) or not whole(n) then return fresh(key_of_entry(id)) end
  return {t = t, d = tonumber(d), a = tonumber(a), r = tonumber(r), f = f, n = tonumber(n), k = k}
end
local function state(id)
  local s = states[id]
  if s == nil then s = parse(call('HGET', CLAIMS, id), id); states[id] = s end
  return s
end
local function score(id)
  local s = scores[id]
  if s == nil then s = tonumber(call('ZSCORE', PENDING, id)) or false; scores[id] = s end
  return s
end
local function preload(ids)
  if #ids == 0 then return end
  local claims = call('HMGET', CLAIMS, unpack(ids))
  local places = call('ZMSCORE', PENDING, unpack(ids))
  for i, id in ipairs(ids) do
    if states[id] == nil then states[id] = parse(claims[i], id) end
    if scores[id] == nil then scores[id] = tonumber(places[i]) or false end
  end
end
local function head(key)
  local h = heads[key]
  if h == nil then h = call('HGET', HEADS, key); heads[key] = h end
  return h
end
local function set_head(key, id)
  heads[key] = id
  if not changed_keys[key] then changed_keys[key] = true; changed_key_list[#changed_key_list + 1] = key end
end
local function touch(id)
  if not touched[id] then touched[id] = true; touched_ids[#touched_ids + 1] = id end
end
local function forget(id)
  states[id] = false; scores[id] = false
  if not dead[id] then dead[id] = true; dead_ids[#dead_ids + 1] = id end
end
local function peek(key, n)
  local q = queues[key]
  if not q then q = {at = 0, got = {}, more = true}; queues[key] = q end
  while q.more and #q.got < q.at + n do
    local want = math.max(q.at + n - #q.got, chunk)
    local part = call('ZRANGEBYLEX', FOLLOWERS, '[' .. key .. '\0', '(' .. key .. '\1', 'LIMIT', #q.got, want)
    for _, m in ipairs(part) do q.got[#q.got + 1] = m end
    q.more = #part == want
  end
  return q.got[q.at + n]
end
local function advance(key, left, token, deadline)
  local m = peek(key, 1)
  if not m then set_head(key, false); return end
  queues[key].at = queues[key].at + 1
  gone[#gone + 1] = m
  local id = string.sub(m, -36)
  set_head(key, id)
  local s = state(id) or fresh(key)
  s.k = key
  if left > 0 then
    s.t = token; s.n = left; s.d = s.d + 1; scores[id] = deadline
  else
    s.t = '0'; s.n = 0; scores[id] = whole(string.sub(m, -51, -37)) or now
  end
  states[id] = s
  touch(id)
end
local function held(id, key, token, whole_run)
  local bearer = id
  if key ~= '' then
    bearer = head(key)
    if not bearer or (not whole_run and bearer ~= id) then return nil end
  end
  local s = state(bearer)
  if not s or token == '0' or s.t ~= token or s.k ~= key or not score(bearer) then return nil end
  return s, bearer
end
local function flush()
  if #dead_ids > 0 then
    local bytes = 0
    for _, id in ipairs(dead_ids) do bytes = bytes + call('HSTRLEN', ENTRIES, id) end
    count('bytes', -bytes)
    call('HDEL', ENTRIES, unpack(dead_ids))
    call('ZREM', PENDING, unpack(dead_ids))
    call('HDEL', CLAIMS, unpack(dead_ids))
    call('HDEL', ERRORS, unpack(dead_ids))
  end
  if #gone > 0 then call('ZREM', FOLLOWERS, unpack(gone)) end
  local set, del = {}, {}
  for _, key in ipairs(changed_key_list) do
    if heads[key] then set[#set + 1] = key; set[#set + 1] = heads[key] else del[#del + 1] = key end
  end
  if #set > 0 then call('HSET', HEADS, unpack(set)) end
  if #del > 0 then call('HDEL', HEADS, unpack(del)) end
  local claims, add, rem = {}, {}, {}
  for _, id in ipairs(touched_ids) do
    if not dead[id] then
      local s = states[id]
      claims[#claims + 1] = id
      claims[#claims + 1] = s.t .. ':' .. s.d .. ':' .. s.a .. ':' .. s.r .. ':' .. s.f .. ':' .. s.n .. ':' .. s.k
      if scores[id] then add[#add + 1] = F(scores[id]); add[#add + 1] = id elseif scores[id] == false then rem[#rem + 1] = id end
    end
  end
  if #claims > 0 then call('HSET', CLAIMS, unpack(claims)) end
  if #add > 0 then call('ZADD', PENDING, unpack(add)) end
  if #rem > 0 then call('ZREM', PENDING, unpack(rem)) end
  write_counts()
end
)lua";

/// Parks up to `most` of those behind the parked head of a key. Gives how many are left (none: the key is free), and how many it parked.
inline constexpr std::string_view lua_park_behind = R"lua(
local function park_behind(key, most)
  local blocking = head(key)
  if not blocking or not call('ZSCORE', PARKED, blocking) then return 0, 0 end
  -- Parked to block its key, not to have it parked: whoever was told to go on came late.
  local how = state(blocking)
  if not how or how.n == 0 then return 0, 0 end
  local parked, errors, claims = {}, {}, {}
  if most > 0 then peek(key, most) end
  local q = queues[key]
  local n = q and math.min(most, #q.got) or 0
  for i = 1, n do
    local m = q.got[i]
    local id = string.sub(m, -36)
    gone[#gone + 1] = m
    local s = state(id) or fresh(key)
    parked[#parked + 1] = F(now); parked[#parked + 1] = id
    errors[#errors + 1] = id; errors[#errors + 1] = 'parked behind ' .. blocking
    claims[#claims + 1] = id
    claims[#claims + 1] = '0:' .. s.d .. ':' .. s.a .. ':' .. s.r .. ':' .. s.f .. ':0:' .. key
  end
  if n > 0 then
    call('ZADD', PARKED, unpack(parked))
    call('HSET', ERRORS, unpack(errors))
    call('HSET', CLAIMS, unpack(claims))
    count('parkings', n)
  end
  local left = call('ZLEXCOUNT', FOLLOWERS, '[' .. key .. '\0', '(' .. key .. '\1') - n
  if left == 0 then
    set_head(key, false)
    call('ZREM', PENDING, blocking)
  end
  return left, n
end
)lua";

/// ARGV: key, most. Reply: how many are left.
inline constexpr std::string_view lua_park_followers = R"lua(
chunk = tonumber(ARGV[2])
local left = park_behind(ARGV[1], chunk)
flush()
return left
)lua";

/// Hands an event out, and the run behind it.
inline constexpr std::string_view lua_take = R"lua(
local function give(out, left, id, entry, s)
  local last = ''
  if s.f ~= '0' then last = call('HGET', ERRORS, id) or '' end
  out[#out + 1] = entry
  out[#out + 1] = s.d .. ':' .. s.a .. ':' .. s.r .. ':' .. id .. s.k
  out[#out + 1] = last
  left.bytes = math.max(left.bytes - #entry, 0)
  left.events = left.events - 1
  count('claims', 1)
end
local function take(id, entry, token, lease, run, left, out)
  if not entry then
    count('orphans', 1)
    local s = state(id)
    local key = s and s.k or ''
    forget(id)
    if key ~= '' and head(key) == id then advance(key, 0, '0', 0) end
    return
  end
  local s = state(id) or fresh('')
  -- Of a key only the first event is pending. Otherwise another program wrote this claim: settling it failed the first time.
  if s.k ~= '' and s.d > 0 and head(s.k) ~= id then
    s.k = key_of_entry(id)
    if s.k ~= '' and head(s.k) ~= id then
      if head(s.k) then s.k = '' else set_head(s.k, id) end
    end
  end
  local first_time = s.d == 0
  s.d = s.d + 1; s.t = token; s.n = 1
  states[id] = s
  scores[id] = now + lease
  touch(id)
  give(out, left, id, entry, s)
  if s.k == '' or not first_time then return end
  local stop = false
  while not stop and s.n < run and left.events > 0 do
    local ids, times = {}, {}
    while #ids < 100 and s.n + #ids < run and #ids < left.events do
      local m = peek(s.k, s.n + #ids)
      if not m then break end
      ids[#ids + 1] = string.sub(m, -36)
      times[#times + 1] = whole(string.sub(m, -51, -37)) or now
    end
    if #ids == 0 then return end
    local texts = call('HMGET', ENTRIES, unpack(ids))
    local claims = call('HMGET', CLAIMS, unpack(ids))
    for i, follower in ipairs(ids) do
      local text = texts[i]
      if times[i] > now or not text or #text > left.bytes then stop = true; break end
      local f = parse(claims[i], follower) or fresh(s.k)
      f.k = s.k
      f.d = f.d + 1
      give(out, left, follower, text, f)
      s.n = s.n + 1
    end
  end
end
)lua";

/// ARGV: most, run, bytes, lease, owner. Reply: status, token, until next, now, then for each event: entry, counts with id and key, last error.
inline constexpr std::string_view lua_claim = R"lua(
local most, run, bytes, lease, owner = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
if owner ~= '' and not holds_lock(owner) then return {'fenced', '0', '', F(now)} end
if call('HGET', META, 'paused') == '1' then return {'paused', '0', '', F(now)} end
local due = call('ZRANGEBYSCORE', PENDING, '-inf', F(now), 'LIMIT', 0, most)
local out = {'empty', '0', '', F(now)}
if #due == 0 then
  out[3] = until_first(PENDING)
  return out
end
local token = F(next_number('token'))
local left = {events = 1000, bytes = bytes}
local to_park = 1000
chunk = math.min(run, 100)
local stop = false
for from = 1, #due, 100 do
  if stop then break end
  local ids = {unpack(due, from, math.min(from + 99, #due))}
  local texts = call('HMGET', ENTRIES, unpack(ids))
  local claims = call('HMGET', CLAIMS, unpack(ids))
  for i, id in ipairs(ids) do
    if left.events == 0 then stop = true; break end
    if states[id] == nil then states[id] = parse(claims[i], id) end
    local s = states[id]
    if s and s.t == '0' and s.n ~= 0 and call('ZSCORE', PARKED, id) then
      -- Parked, and whoever did it did not come to those behind it.
      if head(s.k) == id then
        local _, parked = park_behind(s.k, to_park)
        to_park = to_park - parked
      else
        call('ZREM', PENDING, id)
      end
    elseif #out > 4 and texts[i] and #texts[i] > left.bytes then
      stop = true; break
    else
      take(id, texts[i], token, lease, run, left, out)
    end
  end
end
flush()
out[1] = #out > 4 and 'some' or 'empty'
out[2] = token
out[3] = until_first(PENDING)
return out
)lua";

/// ARGV: token, lease, then for each event: id, key. Reply: a text with 1 or 0 for each.
inline constexpr std::string_view lua_extend = R"lua(
local token, lease = ARGV[1], tonumber(ARGV[2])
local done, add = {}, {}
for i = 3, #ARGV, 2 do
  local s, bearer = held(ARGV[i], ARGV[i + 1], token, true)
  done[#done + 1] = s and '1' or '0'
  if s then add[#add + 1] = F(now + lease); add[#add + 1] = bearer end
end
if #add > 0 then call('ZADD', PENDING, unpack(add)) end
return table.concat(done)
)lua";

/// ARGV: token, window, limit, continue (1 or 0), run, bytes, lease, owner, then for each: kind, id, key, and for retry and park also
/// delay, counts, error, policy. Reply: done, the keys whose followers are to be parked (with their number before), then as for a claim.
inline constexpr std::string_view lua_settle = R"lua(
local token, window, limit, continue = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
local run, bytes, lease, owner = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]
local before = first_score(PENDING)
local items, ids = {}, {}
local at = 9
while at <= #ARGV do
  local item = {kind = ARGV[at], id = ARGV[at + 1], key = ARGV[at + 2]}
  at = at + 3
  if item.kind == 'r' or item.kind == 'p' then
    item.delay, item.counts, item.error, item.policy = tonumber(ARGV[at]), ARGV[at + 1] == '1', ARGV[at + 2], ARGV[at + 3]
    at = at + 4
  end
  items[#items + 1] = item
  ids[#ids + 1] = item.id
end
preload(ids)
chunk = math.min(#items + run, 1000)
local done, more, finished, remember = {}, {}, {}, {}
for i, item in ipairs(items) do
  local id, key = item.id, item.key
  local s = held(id, key, token, false)
  done[i] = s and '1' or '0'
  if not s then
    count('stale', 1)
    local p = item.kind == 'p' and item.policy == 'park' and key ~= '' and head(key) == id and state(id)
    if p and p.t == '0' and F(p.n) == token then more[#more + 1] = key end
  else
    local deadline = score(id)
    local rest = math.max(s.n - 1, 0)
    if item.kind == 'a' then
      forget(id)
      remember[#remember + 1] = F(now); remember[#remember + 1] = id
      count('acked', 1)
      if key ~= '' then
        advance(key, rest, token, deadline)
        if rest == 0 and head(key) then finished[#finished + 1] = key end
      end
    else
      s.t = '0'; s.n = 0
      touch(id)
      if item.kind == 'l' then
        s.d = math.max(s.d - 1, 0)
        scores[id] = now
      else
        if item.counts then s.a = s.a + 1 elseif item.kind == 'r' then s.d = math.max(s.d - 1, 0) end
        if s.f == '0' then s.f = F(now) end
        call('HSET', ERRORS, id, item.error)
        if item.kind == 'r' then
          count('retried', 1)
          scores[id] = now + item.delay
        else
          count('parkings', 1)
          scores[id] = false
          call('ZADD', PARKED, F(now), id)
          if key ~= '' then
            if item.policy == 'skip' or (item.policy == 'park' and not peek(key, 1)) then
              advance(key, rest, token, deadline)
            elseif item.policy == 'park' then
              s.n = token
              scores[id] = now
              more[#more + 1] = key
            end
          end
        end
      end
    end
  end
end
if #remember > 0 then
  if window > 0 then call('ZADD', DONE, unpack(remember)) end
  trim(window, limit)
end
local out = {'empty', '0', '', F(now)}
if continue then
  if owner ~= '' and not holds_lock(owner) then
    out[1] = 'fenced'
  elseif call('HGET', META, 'paused') == '1' then
    out[1] = 'paused'
  else
    local left = {events = 1000, bytes = bytes}
    local fence
    for _, key in ipairs(finished) do
      local id = head(key)
      local s = id and state(id)
      if s and left.events > 0 and (score(id) or now + 1) <= now and s.t == '0' then
        local text = call('HGET', ENTRIES, id)
        if #out == 4 or not text or #text <= left.bytes then
          if not fence then fence = F(next_number('token')) end
          take(id, text, fence, lease, run, left, out)
        end
      end
    end
    if fence then out[2] = fence end
    if #out > 4 then out[1] = 'some' end
  end
end
flush()
if continue then out[3] = until_first(PENDING) end
mark_if_earlier(before)
local reply = {table.concat(done), #more}
for _, key in ipairs(more) do reply[#reply + 1] = key end
for _, value in ipairs(out) do reply[#reply + 1] = value end
return reply
)lua";

/// ARGV: ids. Reply: a text with 1 or 0 for each.
inline constexpr std::string_view lua_replay = R"lua(
local before = first_score(PENDING)
local done = {}
for i, id in ipairs(ARGV) do
  local was = call('ZREM', PARKED, id) == 1
  done[i] = was and '1' or '0'
  if was then
    local s = state(id) or fresh('')
    local again = fresh(s.k)
    again.r = s.r + 1
    states[id] = again
    touch(id)
    call('HDEL', ERRORS, id)
    local at = s.k ~= '' and head(s.k)
    if at and at ~= id then
      local sequence = next_sequence()
      call('ZADD', FOLLOWERS, 0, s.k .. '\0' .. string.format('%016.0f%015.0f', sequence, now) .. id)
      scores[id] = nil
    else
      if s.k ~= '' then set_head(s.k, id) end
      scores[id] = now
    end
  end
end
flush()
mark_if_earlier(before)
return table.concat(done)
)lua";

inline constexpr std::string_view lua_discard = R"lua(
local before = first_score(PENDING)
local done = {}
for i, id in ipairs(ARGV) do
  local was = call('ZREM', PARKED, id) == 1
  done[i] = was and '1' or '0'
  if was then
    local s = state(id)
    local key = s and s.k or ''
    forget(id)
    if key ~= '' and head(key) == id then advance(key, 0, '0', 0) end
  end
end
flush()
mark_if_earlier(before)
return table.concat(done)
)lua";

/// ARGV: 1 or 0.
inline constexpr std::string_view lua_pause = R"lua(
call('HSET', META, 'paused', ARGV[1])
if ARGV[1] == '0' then mark() end
return 1
)lua";

}  // namespace HOLDFAST_NAMESPACE::outboxes

#include "outbox/redis_scripts_more.hpp"
