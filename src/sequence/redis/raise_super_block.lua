-- Raises a counter, never lowers it: super_blocks, after the source of the super-blocks was raised.
--
-- ARGV: the ordinal that must not be granted any more; the last ordinal and the epoch of the
-- source.
-- Returns {last, epoch}.
-- luacheck: read globals counter ordinal server

local minimum = ordinal.parse(ARGV[1])
local source_last, source_epoch = ordinal.parse(ARGV[2]), ARGV[3]
local last, top, epoch = counter.last, counter.top, counter.epoch
if counter.server ~= server or ordinal.less(ordinal.parse(epoch), ordinal.parse(source_epoch)) then
  -- This server does not know what was granted: it may be everything that the source granted.
  last, top, epoch = source_last, source_last, source_epoch
elseif ordinal.less(last, minimum) then
  last = minimum
  if ordinal.less(top, last) then top = last end
end
redis.call('HSET', KEYS[1], 'last', ordinal.format(last), 'epoch', epoch, 'server', server,
  'top', ordinal.format(top))
return {ordinal.format(last), epoch}
