-- Leaves a command for instances. At most 100 are kept: beyond that, it is refused.
--
-- KEYS: the hash of commands. ARGV: id, text without the time, validity in microseconds, and the
-- same in seconds for the expiry of the hash. Reply: 1, or 0 if there are too many.
local time = redis.call('TIME')
local valid_until = string.format('%.0f', time[1] * 1000000 + time[2] + ARGV[3])
if redis.call('HLEN', KEYS[1]) >= 100 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], valid_until .. '\n' .. ARGV[2])
if redis.call('TTL', KEYS[1]) < tonumber(ARGV[4]) then
  redis.call('EXPIRE', KEYS[1], ARGV[4])
end
return 1
