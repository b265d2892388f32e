-- Reads a counter.
--
-- Returns {last, epoch, 1 if this server wrote the counter since it started (else 0)}, or nothing.
-- luacheck: read globals counter ordinal replication_id

if not counter.exists then return false end
local written_here = counter.server and counter.server == replication_id()
return {ordinal.format(counter.last), counter.epoch, written_here and 1 or 0}
