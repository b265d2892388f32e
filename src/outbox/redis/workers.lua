-- Records that a worker lives, or that it has ended. Requires keys.lua.
--
-- KEYS[14]: sorted set of workers, by the time until which they live.
-- ARGV: name of the worker, time to live (0: it has ended).
-- Reply: names of all workers that live.
local WORKERS = KEYS[14]
local worker, ttl = ARGV[1], tonumber(ARGV[2])
call('ZREMRANGEBYSCORE', WORKERS, '-inf', string.format('%.0f', now))
if ttl > 0 then
  call('ZADD', WORKERS, string.format('%.0f', now + ttl), worker)
  if call('PTTL', WORKERS) < ttl then call('PEXPIRE', WORKERS, string.format('%.0f', ttl)) end
else
  call('ZREM', WORKERS, worker)
end
return call('ZRANGE', WORKERS, 0, -1)
