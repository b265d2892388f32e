-- Writes the report of an instance, and returns the valid commands.
--
-- KEYS: the hash of the instance, the index of instances, the hash of commands.
-- ARGV: instance, kind, interval in ms, state, lifetime of the report in seconds.
-- Reply: id and text of each command. The text begins with the time in microseconds until which
-- the command is valid, and a line break.
local time = redis.call('TIME')
local now = string.format('%d%06d', time[1], time[2])
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('HSET', KEYS[1], 'started', now) end
redis.call('HSET', KEYS[1], 'kind', ARGV[2], 'every', ARGV[3], 'state', ARGV[4], 'seen', now)
redis.call('EXPIRE', KEYS[1], ARGV[5])
redis.call('ZADD', KEYS[2], time[1], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', time[1] - ARGV[5])
redis.call('EXPIRE', KEYS[2], ARGV[5])
local valid = {}
local commands = redis.call('HGETALL', KEYS[3])
for i = 1, #commands, 2 do
  local valid_until = string.match(commands[i + 1], '^(%d+)\n')
  if tonumber(valid_until or 0) <= tonumber(now) then
    redis.call('HDEL', KEYS[3], commands[i])
  else
    valid[#valid + 1] = commands[i]
    valid[#valid + 1] = commands[i + 1]
  end
end
return valid
