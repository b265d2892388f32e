-- Grants a block that is not ahead of the clock: clock_fence.
--
-- ARGV: count, limit, ordinals per second, origin in seconds since 1970, max_skew in microseconds.
-- Returns {'granted', first, last, epoch}, {'end', epoch} or {'wait', microseconds}.
-- luacheck: read globals counter ordinal replication_id

local count, limit = ordinal.parse(ARGV[1]), ordinal.parse(ARGV[2])
local rate, origin, max_skew = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

-- The ordinals that may have been granted so many microseconds after the origin.
local function ordinals_until(microseconds)
  local seconds = math.floor(microseconds / 1000000)
  local ordinals = seconds * rate + math.floor((microseconds - seconds * 1000000) * rate / 1000000)
  return {high = math.floor(ordinals / ordinal.half), low = ordinals % ordinal.half}
end

local time = redis.call('TIME')
local elapsed = (tonumber(time[1]) - origin) * 1000000 + tonumber(time[2])
if elapsed < 0 then
  error('HOLDFAST the clock of this server is before the origin of clock_fence')
end

local last, epoch = counter.last, counter.epoch
local server = replication_id()
if counter.server ~= server then
  -- Another server, or this one before a restart, may have granted ordinals up to here.
  local granted_elsewhere = ordinals_until(elapsed + max_skew)
  if ordinal.less(last, granted_elsewhere) then last = granted_elsewhere end
  redis.call('HSET', KEYS[1], 'last', ordinal.format(last), 'epoch', epoch, 'server', server)
end
if not ordinal.less(last, limit) then return {'end', epoch} end

local first = ordinal.add(last, ordinal.one)
local new_last = ordinal.add(last, ordinal.min(count, ordinal.subtract(limit, last)))
local allowed = ordinals_until(elapsed)
if ordinal.less(allowed, new_last) then
  local missing = ordinal.subtract(new_last, allowed)
  local microseconds = math.ceil((missing.high * ordinal.half + missing.low) * 1000000 / rate)
  return {'wait', string.format('%.0f', microseconds)}
end
redis.call('HSET', KEYS[1], 'last', ordinal.format(new_last))
return {'granted', ordinal.format(first), ordinal.format(new_last), epoch}
