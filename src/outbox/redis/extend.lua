-- Extends the leases of claimed events.
-- Requires keys.lua, numbers.lua, records.lua, lane.lua, state.lua.
--
-- ARGV: token, lease, then for each event: id, key.
-- Reply: a text with 1 (held) or 0 for each event.
local token, lease = ARGV[1], tonumber(ARGV[2])
local held, scores = {}, {}
for i = 3, #ARGV, 2 do
  local claim, holder = held_claim(ARGV[i], ARGV[i + 1], token, true)
  held[#held + 1] = claim and '1' or '0'
  if claim then
    scores[#scores + 1] = decimal(now + lease)
    scores[#scores + 1] = holder
  end
end
if #scores > 0 then call('ZADD', PENDING, unpack(scores)) end
return table.concat(held)
