-- Raises a counter, never lowers it: all fences but super_blocks.
--
-- ARGV: the ordinal that must not be granted any more; for clock_fence also: ordinals per second,
-- origin in seconds since 1970, max_skew in microseconds.
-- Returns {last, epoch, number of connected replicas}.
-- luacheck: read globals counter ordinal server replication last_by_clock

local last, minimum = counter.last, ordinal.parse(ARGV[1])
if ARGV[2] then
  -- What another server may have granted is skipped, as by a grant.
  last = last_by_clock(2)
  redis.call('HSET', KEYS[1], 'server', server)
end
if ordinal.less(last, minimum) then last = minimum end
redis.call('HSET', KEYS[1], 'last', ordinal.format(last), 'epoch', counter.epoch)
local replicas = tonumber(string.match(replication, 'connected_slaves:(%d+)') or '0')
return {ordinal.format(last), counter.epoch, replicas}
