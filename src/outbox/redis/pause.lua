-- Stops or resumes claims. Requires keys.lua, numbers.lua, lane.lua.
--
-- ARGV: 1 (paused) or 0.
call('HSET', META, 'paused', ARGV[1])
if ARGV[1] == '0' then wake() end
return 1
