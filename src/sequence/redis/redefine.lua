-- Changes the definition of a counter if it still has the expected state and definition, and raises
-- the counter.
--
-- ARGV: the expected last ordinal, epoch and definition; the new last ordinal and definition; for
-- clock_fence also: ordinals per second, origin in seconds since 1970, max_skew in microseconds.
-- Returns 1 when the definition was changed, else 0; -1 if the counter would be ahead of the clock.
-- luacheck: read globals counter fields server ordinal ordinals_until microseconds_since

if fields[1] ~= ARGV[1] or counter.epoch ~= ARGV[2] or counter.definition ~= ARGV[3] then
  return 0
end
-- A counter that is bound to another server may be older than what was granted from it. Only a
-- grant with its own fence knows how much to skip.
if counter.server and counter.server ~= server then return 0 end
if ARGV[6] then
  local allowed = ordinals_until(microseconds_since(tonumber(ARGV[7])), tonumber(ARGV[6]))
  if ordinal.less(allowed, ordinal.parse(ARGV[4])) then return -1 end
end
-- Without `top` the rest of a super-block is dropped; a new one must be above `last`.
redis.call('HSET', KEYS[1], 'last', ARGV[4], 'definition', ARGV[5])
redis.call('HDEL', KEYS[1], 'top')
-- Without these fences no grant writes `server`, and an old one would forbid later changes.
if not string.find(ARGV[5], 'fence=clock', 1, true)
    and not string.find(ARGV[5], 'fence=super', 1, true) then
  redis.call('HDEL', KEYS[1], 'server')
end
return 1
