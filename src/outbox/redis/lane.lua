-- Helpers of most scripts: counters, the wake-up list, the lock, the dedup window.
-- They are few: creating a function costs time in every call, even if it is not used.
-- Requires keys.lua, numbers.lua.
--
-- luacheck: push ignore 211 (a script uses some of them)

-- Counters of META. They are collected here; write_counters() writes them. A counter that is not a
-- number or becomes negative restarts. A repair corrects those that can be counted.
local counters = {}
local function add_to_counter(name, amount) counters[name] = (counters[name] or 0) + amount end
local function write_counters()
  for name, amount in pairs(counters) do
    if amount ~= 0 then
      local sum = redis.pcall('HINCRBY', META, name, decimal(amount))
      if type(sum) == 'table' or sum < 0 then
        call('HSET', META, name, decimal(math.max(amount, 0)))
      end
    end
  end
end

-- The smallest score of a sorted set, or nil.
local function first_score(key)
  local first = call('ZRANGE', key, 0, 0, 'WITHSCORES')
  return first[2] and tonumber(first[2])
end

-- Milliseconds until the smallest score, as text; empty if the set is empty. At most ten years: a
-- score that another program wrote may be infinite.
local function time_until_first(key)
  local first = first_score(key)
  return first and decimal(math.min(math.max(first - now, 0), 3.2e11)) or ''
end

-- Wakes one worker that waits.
local function wake()
  if call('EXISTS', WAKE) == 0 then call('RPUSH', WAKE, '1') end
end

-- Wakes a worker if something is due earlier than `before`, the first score before the change.
local function wake_if_earlier(before)
  local first = first_score(PENDING)
  if first and (not before or first < before) then wake() end
end

local function holds_lock(owner)
  local value = call('GET', LOCK)
  return value and string.sub(value, 1, #owner + 1) == owner .. '|'
end

-- Forgets ids that are older than the window or beyond the limit (0: no limit), at most 1000 in a
-- call. Marks of effects whose events exist have a time in the future. They do not count, and stay.
local function trim_done(window, limit)
  local surplus = call('ZCOUNT', DONE, '-inf', decimal(now - window))
  local size = limit > 0 and call('ZCARD', DONE) or 0
  if size - limit > surplus then
    local marks = call('ZCOUNT', DONE, '(' .. decimal(now), '+inf')
    surplus = math.max(surplus, size - marks - limit)
  end
  if surplus > 0 then call('ZREMRANGEBYRANK', DONE, 0, math.min(surplus, 1000) - 1) end
end
-- luacheck: pop
