-- Takes or renews the lock of the lane. Requires keys.lua, numbers.lua, lane.lua.
--
-- ARGV: owner, time to live, take the lock if it is free (1) or only renew it (0).
-- Reply: held (1 or 0), fence, holder, remaining time.
local owner, ttl, takes_free_lock = ARGV[1], ARGV[2], ARGV[3] == '1'
local value = call('GET', LOCK)
local holder, fence = string.match(value or '', '^(.*)|(%d+)$')
-- A text that no script wrote is not a lock. One without an end is given one: its holder may live.
if holder then
  if holder ~= owner then
    if call('PTTL', LOCK) < 0 then call('PEXPIRE', LOCK, ttl) end
    return {0, fence, holder, call('PTTL', LOCK)}
  end
  call('PEXPIRE', LOCK, ttl)
  return {1, fence, owner, tonumber(ttl)}
end
if not takes_free_lock then return {0, '0', '', 0} end
fence = decimal(next_number('fence'))
call('SET', LOCK, owner .. '|' .. fence, 'PX', ttl)
return {1, fence, owner, tonumber(ttl)}
