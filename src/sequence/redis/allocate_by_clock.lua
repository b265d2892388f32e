-- Grants a block that is not ahead of the clock: clock_fence.
--
-- ARGV: count, limit, ordinals per second, origin in seconds since 1970, max_skew in microseconds,
-- definition or ''.
-- Returns {'granted', first, last, epoch}, {'end', epoch}, {'wait', microseconds} or
-- {'differs', definition}.
-- luacheck: read globals counter ordinal server last_by_clock ordinals_until microseconds_since

local count, limit, rate = ordinal.parse(ARGV[1]), ordinal.parse(ARGV[2]), tonumber(ARGV[3])
if counter.differs(ARGV[6]) then return {'differs', counter.definition} end

local epoch = counter.epoch
local elapsed = microseconds_since(tonumber(ARGV[4]))
local last = last_by_clock(3)
if counter.server ~= server then
  redis.call('HSET', KEYS[1], 'last', ordinal.format(last), 'epoch', epoch, 'server', server)
end
if not ordinal.less(last, limit) then return {'end', epoch} end

local first = ordinal.add(last, ordinal.one)
local new_last = ordinal.add(last, ordinal.min(count, ordinal.subtract(limit, last)))
local allowed = ordinals_until(elapsed, rate)
if ordinal.less(allowed, new_last) then
  local missing = ordinal.subtract(new_last, allowed)
  local microseconds = math.ceil((missing.high * ordinal.half + missing.low) * 1000000 / rate)
  return {'wait', string.format('%.0f', microseconds)}
end
redis.call('HSET', KEYS[1], 'last', ordinal.format(new_last))
return {'granted', ordinal.format(first), ordinal.format(new_last), epoch}
