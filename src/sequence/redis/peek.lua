-- Reads a counter.
--
-- ARGV: nothing, or for clock_fence: ordinals per second, origin in seconds since 1970, max_skew in
-- microseconds.
-- Returns {last, epoch, 1 if this server wrote the counter since it started (else 0)}, or nothing.
-- luacheck: read globals counter ordinal server last_by_clock

if not counter.exists then return false end
local last = counter.last
-- A counter without a server was never bound to one: its last ordinal is what it says.
if ARGV[1] and counter.server then last = last_by_clock(1) end
return {ordinal.format(last), counter.epoch,
  (not counter.server or counter.server == server) and 1 or 0}
