-- Deletes a counter, but not its definition, if it still has the expected state.
--
-- ARGV: the expected last ordinal and epoch. Returns 1 when the counter was deleted, else 0.
-- luacheck: read globals counter fields

if fields[1] ~= ARGV[1] or counter.epoch ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[1], 'last', 'epoch', 'server', 'top')
return 1
