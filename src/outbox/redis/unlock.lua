-- Releases the lock of the lane. Requires keys.lua, numbers.lua, lane.lua.
--
-- ARGV: owner. Reply: 1 if it held the lock, otherwise 0.
if not holds_lock(ARGV[1]) then return 0 end
call('DEL', LOCK)
return 1
