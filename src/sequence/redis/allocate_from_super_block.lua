-- Grants a block out of the current super-block: super_blocks.
--
-- ARGV: count, limit, the last ordinal and the epoch that the caller was granted before; then the
-- first ordinal, the last ordinal and the epoch of a new super-block, or three empty texts; then
-- the definition or ''.
-- Returns {'granted', first, last, epoch}, {'differs', definition} or {'refill', last, epoch}: the
-- caller must bring a super-block above `last`.
-- luacheck: read globals counter ordinal server

local count, limit = ordinal.parse(ARGV[1]), ordinal.parse(ARGV[2])
local granted_last, granted_epoch = ordinal.parse(ARGV[3]), ARGV[4]
local brings_block = ARGV[5] ~= ''

if counter.differs(ARGV[8]) then return {'differs', counter.definition} end

local last, top, epoch = counter.last, counter.top, counter.epoch
-- A super-block belongs to the server that received it. After a restart or a promotion the hash may
-- be older than what was granted from it.
local valid = counter.server == server

-- A caller that was granted more than this counter knows of has seen a newer one.
local function skip_granted()
  if valid and epoch == granted_epoch and ordinal.less(last, granted_last) then
    last = ordinal.min(granted_last, top)
  end
end

skip_granted()
if brings_block then
  local new_first, new_top, new_epoch = ordinal.parse(ARGV[5]), ordinal.parse(ARGV[6]), ARGV[7]
  -- The counter never goes back: a super-block that a newer one overtook is dropped.
  local newer = not counter.exists
    or ordinal.less(ordinal.parse(epoch), ordinal.parse(new_epoch))
    or (epoch == new_epoch and ordinal.less(last, new_first))
  local follows = valid and epoch == new_epoch
    and ordinal.format(ordinal.add(top, ordinal.one)) == ordinal.format(new_first)
  if newer and follows then
    top = new_top
  elseif newer and (not valid or ordinal.less(ordinal.subtract(top, last), count)) then
    last, top, epoch, valid = ordinal.subtract(new_first, ordinal.one), new_top, new_epoch, true
  end
  skip_granted()
end

local available = ordinal.subtract(ordinal.min(top, limit), last)
local too_short = ordinal.less(available, count) and ordinal.less(top, limit)
if not valid or ordinal.format(available) == '0' or (too_short and not brings_block) then
  return {'refill', ordinal.format(last), epoch}
end
local first = ordinal.add(last, ordinal.one)
last = ordinal.add(last, ordinal.min(count, available))
redis.call('HSET', KEYS[1], 'last', ordinal.format(last), 'epoch', epoch, 'server', server,
  'top', ordinal.format(top))
return {'granted', ordinal.format(first), ordinal.format(last), epoch}
