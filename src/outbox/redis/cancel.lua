-- Cancels a ticket. Requires keys.lua.
--
-- ARGV: ticket. Reply: cancelled, fired or unknown.
local ticket = ARGV[1]
if call('ZREM', EXPIRY, ticket) == 1 then
  call('HDEL', TICKETS, ticket)
  return 'cancelled'
end
if call('ZSCORE', DONE, 't:' .. ticket) then return 'fired' end
return 'unknown'
