-- Settles claimed events in the given order. Then, if asked to, claims the next run of each key
-- whose run was acknowledged to its end.
-- Requires keys.lua, settle_fast.lua, numbers.lua, records.lua, lane.lua, state.lua, hand_out.lua.
--
-- ARGV: token, dedup window, dedup limit, claim next runs (1 or 0), run, bytes, lease, owner; then
-- for each settlement: kind (a: ack, r: retry, p: park, l: release), id, key; of r and p also
-- delay, counts as an attempt (1 or 0), error, park policy.
-- Reply: a text with 1 (settled) or 0 (stale) for each settlement, the number of keys whose
-- followers are to be parked, these keys, then the reply of a claim (hand_out.lua).
local token, window, limit = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local claims_next = ARGV[4] == '1'
local run, bytes, lease, owner = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]
local first_before = first_score(PENDING)
local finished_keys = {} -- keys whose run was acknowledged to its end, and that have another event
local keys_to_park = {} -- keys whose followers are to be parked
local delivered = {} -- time, id, time, id... for DONE

-- The lease was lost, or this settlement repeats one whose reply was lost. In the second case its
-- followers are still to be parked.
local function reject(settlement)
  add_to_counter('stale', 1)
  local id, key = settlement.id, settlement.key
  if settlement.kind ~= 'p' or settlement.policy ~= 'park' or key == '' then return end
  if head_of(key) ~= id then return end
  local claim = claim_of(id)
  if claim and claim.token == '0' and claim.parked_by == token then
    keys_to_park[#keys_to_park + 1] = key
  end
end

-- `rest` is the number of events of the run behind this one.
local function acknowledge(id, key, rest)
  local deadline = due_of(id)
  remove_event(id)
  delivered[#delivered + 1] = decimal(now)
  delivered[#delivered + 1] = id
  add_to_counter('acked', 1)
  if key == '' then return end
  promote_follower(key, rest, token, deadline)
  if rest == 0 and head_of(key) then finished_keys[#finished_keys + 1] = key end
end

local function park(id, key, policy, claim, rest)
  local deadline = due_of(id)
  add_to_counter('parkings', 1)
  due_times[id] = false
  call('ZADD', PARKED, decimal(now), id)
  if key == '' then return end
  if policy == 'skip' or (policy == 'park' and not follower_at(key, 1)) then
    promote_follower(key, rest, token, deadline)
  elseif policy == 'park' then
    claim.parked_by = token
    due_times[id] = now
    keys_to_park[#keys_to_park + 1] = key
  end
end

-- Retry, park or release: the event stays, and its claim ends.
local function give_back(settlement, claim, rest)
  local id, kind = settlement.id, settlement.kind
  claim.token, claim.run, claim.parked_by = '0', 0, '0'
  mark_changed(id)
  if kind == 'l' or (kind == 'r' and not settlement.counts) then
    claim.deliveries = math.max(claim.deliveries - 1, 0)
  end
  if kind == 'l' then
    due_times[id] = now
    return
  end
  if settlement.counts then claim.attempts = claim.attempts + 1 end
  if claim.first_failed == '0' then claim.first_failed = decimal(now) end
  call('HSET', ERRORS, id, settlement.error)
  if kind == 'r' then
    add_to_counter('retried', 1)
    due_times[id] = now + settlement.delay
  else
    park(id, settlement.key, settlement.policy, claim, rest)
  end
end

local function claim_next_runs(reply)
  local budget = {events = 1000, bytes = bytes}
  local new_token
  for _, key in ipairs(finished_keys) do
    local id = head_of(key)
    local claim = id and claim_of(id)
    local is_ready = claim and (due_of(id) or now + 1) <= now and claim.token == '0'
    if is_ready and budget.events > 0 then
      local entry = call('HGET', ENTRIES, id)
      if #reply == CLAIM_HEADER or not entry or #entry <= budget.bytes then
        new_token = new_token or decimal(next_number('token'))
        hand_out(id, entry, new_token, lease, run, budget, reply)
      end
    end
  end
  reply[2] = new_token or '0'
  if #reply > CLAIM_HEADER then reply[1] = 'some' end
end

local settlements, ids = {}, {}
local index = 9
while index <= #ARGV do
  local settlement = {kind = ARGV[index], id = ARGV[index + 1], key = ARGV[index + 2]}
  index = index + 3
  if settlement.kind == 'r' or settlement.kind == 'p' then
    settlement.delay = tonumber(ARGV[index])
    settlement.counts = ARGV[index + 1] == '1'
    settlement.error = ARGV[index + 2]
    settlement.policy = ARGV[index + 3]
    index = index + 4
  end
  settlements[#settlements + 1] = settlement
  ids[#ids + 1] = settlement.id
end

preload(ids)
followers_per_read = math.min(#settlements + run, 1000)
local settled = {}
for i, settlement in ipairs(settlements) do
  local claim = held_claim(settlement.id, settlement.key, token, false)
  settled[i] = claim and '1' or '0'
  if not claim then
    reject(settlement)
  else
    local rest = math.max(claim.run - 1, 0)
    if settlement.kind == 'a' then
      acknowledge(settlement.id, settlement.key, rest)
    else
      give_back(settlement, claim, rest)
    end
  end
end
if #delivered > 0 and window > 0 then call('ZADD', DONE, unpack(delivered)) end

local next_claim = new_claim_reply('empty')
if claims_next then
  local refusal = claim_refusal(owner)
  if refusal then next_claim[1] = refusal else claim_next_runs(next_claim) end
end
write_state()
if #delivered > 0 then trim_done(window, limit) end
if claims_next then next_claim[3] = time_until_first(PENDING) end
wake_if_earlier(first_before)

local reply = {table.concat(settled), #keys_to_park}
for _, key in ipairs(keys_to_park) do reply[#reply + 1] = key end
for _, value in ipairs(next_claim) do reply[#reply + 1] = value end
return reply
