-- Sets a counter if it still has the expected state.
--
-- ARGV: the expected last ordinal and epoch, the new ones, and 1 if only the server that wrote the
-- counter may change it (else 0).
-- Returns 1 when the counter was set, else 0.
-- luacheck: read globals counter fields server

local expected_last, expected_epoch = ARGV[1], ARGV[2]
local new_last, new_epoch, same_server_only = ARGV[3], ARGV[4], ARGV[5] == '1'
if fields[1] ~= expected_last or counter.epoch ~= expected_epoch then return 0 end
if same_server_only and counter.server and counter.server ~= server then return 0 end
redis.call('HSET', KEYS[1], 'last', new_last, 'epoch', new_epoch)
return 1
