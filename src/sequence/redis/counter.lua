-- The beginning of every script of a sequence: exact numbers, and the counter in KEYS[1].
--
-- A counter is a hash with these fields:
--   last    the last ordinal that was granted
--   epoch   a number that grows when the counter is reset or starts again
--   server  the replication id of the server that wrote the counter (super_blocks, clock_fence)
--   top     the last ordinal of the current super-block (super_blocks)
--   definition  what all users of the counter must agree on; missing until its first use
--   schema  the schema version of the counter; 1 if it is missing (schema.hpp)
--
-- Ordinals have up to 19 digits, and Lua's numbers are doubles. An ordinal is therefore a table:
-- `low` is its last nine digits and `high` the digits before them. Both are exact.
-- luacheck: ignore 211 (the scripts that follow use what is defined here)
-- luacheck: read globals newest_schema

local ordinal = {half = 1000000000, zero = {high = 0, low = 0}, one = {high = 0, low = 1}}

function ordinal.parse(text)
  if not text then return ordinal.zero end
  local digits = #text
  if digits > 19 or not string.find(text, '^%d+$') then
    error('HOLDFAST this key does not hold a sequence counter')
  end
  if digits <= 9 then return {high = 0, low = tonumber(text)} end
  return {
    high = tonumber(string.sub(text, 1, digits - 9)),
    low = tonumber(string.sub(text, digits - 8)),
  }
end

function ordinal.format(a)
  if a.high == 0 then return string.format('%.0f', a.low) end
  return string.format('%.0f%09.0f', a.high, a.low)
end

function ordinal.less(a, b) return a.high < b.high or (a.high == b.high and a.low < b.low) end

function ordinal.min(a, b)
  if ordinal.less(b, a) then return b end
  return a
end

function ordinal.add(a, b)
  local low = a.low + b.low
  if low >= ordinal.half then return {high = a.high + b.high + 1, low = low - ordinal.half} end
  return {high = a.high + b.high, low = low}
end

-- a - b, but not below zero.
function ordinal.subtract(a, b)
  if ordinal.less(a, b) then return ordinal.zero end
  local low = a.low - b.low
  if low < 0 then return {high = a.high - b.high - 1, low = low + ordinal.half} end
  return {high = a.high - b.high, low = low}
end

-- A replica has the replication id of its master, and may be writable: it must not grant anything.
local replication = redis.call('INFO', 'replication')
if not string.find(replication, 'role:master', 1, true) then
  return redis.error_reply('READONLY HOLDFAST this server is a replica; use its master')
end
-- Redis changes its replication id at every restart and every promotion. A counter with the current
-- id was written by this server since it started.
local server = string.match(replication, 'master_replid:(%x+)')

local fields =
  redis.call('HMGET', KEYS[1], 'last', 'epoch', 'server', 'top', 'definition', 'schema')
if fields[6] and (tonumber(fields[6]) or math.huge) > newest_schema then
  return redis.error_reply(
    'NEWSCHEMA the counter has schema version ' .. fields[6] ..
      ', but this program knows versions up to ' .. newest_schema)
end
local counter = {
  exists = fields[1] ~= false,
  last = ordinal.parse(fields[1]),
  epoch = fields[2] or '1',
  server = fields[3],
  top = ordinal.parse(fields[4]),
  definition = fields[5] or '',
}

-- Whether the counter has another definition. Keeps the definition of the first use.
function counter.differs(definition)
  if definition == '' or counter.definition == definition then return false end
  if counter.definition ~= '' then return true end
  redis.call('HSET', KEYS[1], 'definition', definition)
  return false
end

-- The ordinals that clock_fence may have granted so many microseconds after the origin.
local function ordinals_until(microseconds, rate)
  local seconds = math.floor(microseconds / 1000000)
  local ordinals = seconds * rate + math.floor((microseconds - seconds * 1000000) * rate / 1000000)
  return {high = math.floor(ordinals / ordinal.half), low = ordinals % ordinal.half}
end

-- Microseconds since the origin of clock_fence, which is in seconds since 1970.
local function microseconds_since(origin)
  local time = redis.call('TIME')
  local elapsed = (tonumber(time[1]) - origin) * 1000000 + tonumber(time[2])
  if elapsed < 0 then
    error('HOLDFAST the clock of this server is before the origin of clock_fence')
  end
  return elapsed
end

-- clock_fence: the last ordinal that any server may have granted. `fence` is the position in ARGV
-- of ordinals per second, origin, max_skew in microseconds.
local function last_by_clock(fence)
  local rate, origin, max_skew =
    tonumber(ARGV[fence]), tonumber(ARGV[fence + 1]), tonumber(ARGV[fence + 2])
  if counter.server == server then return counter.last end
  -- Another server, or this one before a restart, may have granted ordinals up to here.
  local granted_elsewhere = ordinals_until(microseconds_since(origin) + max_skew, rate)
  if ordinal.less(counter.last, granted_elsewhere) then return granted_elsewhere end
  return counter.last
end

