-- Grants a block: wait_fence and no_fence.
--
-- ARGV: count, limit, 1 to start again after the limit (else 0), definition or ''.
-- Returns {'granted', first, last, epoch}, {'end', epoch} or {'differs', definition}.
-- luacheck: read globals counter ordinal

local count, limit, cycle = ordinal.parse(ARGV[1]), ordinal.parse(ARGV[2]), ARGV[3] == '1'
if counter.differs(ARGV[4]) then return {'differs', counter.definition} end
local last, epoch = counter.last, counter.epoch
if not ordinal.less(last, limit) then
  if not cycle then return {'end', epoch} end
  last = ordinal.zero
  epoch = ordinal.format(ordinal.add(ordinal.parse(epoch), ordinal.one))
end
local first = ordinal.add(last, ordinal.one)
last = ordinal.add(last, ordinal.min(count, ordinal.subtract(limit, last)))
redis.call('HSET', KEYS[1], 'last', ordinal.format(last), 'epoch', epoch)
return {'granted', ordinal.format(first), ordinal.format(last), epoch}
