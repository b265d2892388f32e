-- Claims events that are due.
-- Requires keys.lua, claim_fast.lua, numbers.lua, records.lua, lane.lua, state.lua,
-- park_followers_of.lua, hand_out.lua.
--
-- ARGV: most, run, bytes, lease, owner. Reply: see hand_out.lua.
local most, run, lease = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
local refusal = claim_refusal(ARGV[5])
if refusal then return new_claim_reply(refusal) end

-- The clock was ahead, and was set back: events that were published meanwhile without a delay are
-- due now. META has the latest time of a publishing in `clock` (to a tenth of a second) and, while
-- there are more than one step examines, the time reached in `swept`, and how many events of that
-- time were passed over.
if latest_publishing > now then
  local time_reached, passed = string.match(call('HGET', META, 'swept') or '', '^(%d+):(%d+)$')
  if (tonumber(time_reached) or 0) < now then time_reached, passed = decimal(now), '0' end
  local page = call('ZRANGEBYSCORE', PENDING, time_reached, decimal(latest_publishing + 100),
    'WITHSCORES', 'LIMIT', passed, 200)
  passed = tonumber(passed)
  local scores = {}
  for i = 1, #page, 2 do
    local id, score = page[i], page[i + 1]
    if score ~= time_reached then time_reached, passed = score, 0 end
    if is_without_delay(call('HGET', ENTRIES, id) or '', tonumber(score)) then
      scores[#scores + 1] = decimal(now)
      scores[#scores + 1] = id
    else
      passed = passed + 1
    end
  end
  if #scores > 0 then call('ZADD', PENDING, unpack(scores)) end
  if #page < 400 then
    call('HSET', META, 'clock', decimal(now))
    call('HDEL', META, 'swept')
  else
    call('HSET', META, 'swept', decimal(time_reached) .. ':' .. decimal(passed))
  end
end

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
