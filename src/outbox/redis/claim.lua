-- Claims events that are due.
-- Requires keys.lua, claim_fast.lua, numbers.lua, records.lua, lane.lua, state.lua,
-- park_followers_of.lua, hand_out.lua.
--
-- ARGV: most, run, bytes, lease, owner. Reply: see hand_out.lua.
local most, run, lease = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
local refusal = claim_refusal(ARGV[5])
if refusal then return new_claim_reply(refusal) end

local reply = new_claim_reply('empty')
local due = call('ZRANGEBYSCORE', PENDING, '-inf', decimal(now), 'LIMIT', 0, most)
if #due == 0 then
  reply[3] = time_until_first(PENDING)
  return reply
end

local token = decimal(next_number('token'))
local budget = {events = 1000, bytes = tonumber(ARGV[3])}
local parking_budget = 1000
followers_per_read = math.min(run, 100)

-- Hands out the events due[first..last]. Returns false when the budget is used up.
local function claim_page(first, last)
  local ids = {unpack(due, first, last)}
  local entries = call('HMGET', ENTRIES, unpack(ids))
  local records = call('HMGET', CLAIMS, unpack(ids))
  for i, id in ipairs(ids) do
    if budget.events == 0 then return false end
    if claims[id] == nil then claims[id] = parse_claim(records[i], id) end
    local claim, entry = claims[id], entries[i]
    if claim and claim.parked_by ~= '0' and call('ZSCORE', PARKED, id) then
      -- It is parked, but not all of its followers are.
      if head_of(claim.key) == id then
        local _, parked = park_followers_of(claim.key, parking_budget)
        parking_budget = parking_budget - parked
      else
        call('ZREM', PENDING, id)
      end
    elseif #reply > CLAIM_HEADER and entry and #entry > budget.bytes then
      return false
    else
      hand_out(id, entry, token, lease, run, budget, reply)
    end
  end
  return true
end

for first = 1, #due, 100 do
  if not claim_page(first, math.min(first + 99, #due)) then break end
end
write_state()
reply[1] = #reply > CLAIM_HEADER and 'some' or 'empty'
reply[2] = token
reply[3] = time_until_first(PENDING)
return reply
