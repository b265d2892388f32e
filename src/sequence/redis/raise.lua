-- Raises a counter, never lowers it: all fences but super_blocks.
--
-- ARGV: the ordinal that must not be granted any more. Returns {last, epoch}.
-- luacheck: read globals counter ordinal

local last, minimum = counter.last, ordinal.parse(ARGV[1])
if ordinal.less(last, minimum) then last = minimum end
redis.call('HSET', KEYS[1], 'last', ordinal.format(last), 'epoch', counter.epoch)
return {ordinal.format(last), counter.epoch}
