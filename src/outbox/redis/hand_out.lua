-- Hands out events to a worker: for claim.lua and settle.lua.
-- Requires keys.lua, numbers.lua, records.lua, lane.lua, state.lua.
--
-- The reply of a claim is a flat list: status (some, empty, paused, fenced), token, time until the
-- next event is due, now; then for each event its entry, `deliveries:attempts:replays:` with id and
-- key behind it, and its last error.
local CLAIM_HEADER = 4

local function new_claim_reply(status) return {status, '0', '', decimal(now)} end

-- Why nothing may be claimed: fenced or paused; nil if claiming is allowed.
local function claim_refusal(owner)
  if owner ~= '' and not holds_lock(owner) then return 'fenced' end
  if call('HGET', META, 'paused') == '1' then return 'paused' end
  return nil
end

-- `budget` is what the reply may still hold: {events, bytes}.
local function append_event(reply, budget, id, entry, claim)
  local last_error = ''
  if claim.first_failed ~= '0' then last_error = call('HGET', ERRORS, id) or '' end
  reply[#reply + 1] = entry
  reply[#reply + 1] = claim.deliveries .. ':' .. claim.attempts .. ':' .. claim.replays .. ':' ..
    id .. claim.key
  reply[#reply + 1] = last_error
  budget.bytes = math.max(budget.bytes - #entry, 0)
  budget.events = budget.events - 1
  add_to_counter('claims', 1)
end

-- The next followers that a run may take: at most 100 ids with the times when they are due.
local function next_followers(claim, run, budget)
  local ids, times = {}, {}
  while #ids < 100 and claim.run + #ids < run and #ids < budget.events do
    local member = follower_at(claim.key, claim.run + #ids)
    if not member then break end
    ids[#ids + 1] = follower_id(member)
    times[#times + 1] = follower_due(member)
  end
  return ids, times
end

-- Appends followers to the run of a claimed head, in order, while they are due and fit the budget.
local function extend_run(claim, run, budget, reply)
  while claim.run < run and budget.events > 0 do
    local ids, times = next_followers(claim, run, budget)
    if #ids == 0 then return end
    local entries = call('HMGET', ENTRIES, unpack(ids))
    local records = call('HMGET', CLAIMS, unpack(ids))
    for i, id in ipairs(ids) do
      local entry = entries[i]
      if not entry or #entry > budget.bytes then return end
      if times[i] > now and not is_without_delay(entry, times[i]) then return end
      local follower = parse_claim(records[i], id) or new_claim(claim.key)
      follower.key = claim.key
      follower.deliveries = follower.deliveries + 1
      append_event(reply, budget, id, entry, follower)
      claim.run = claim.run + 1
    end
  end
end

-- Beginning of an entry with a key, and the same for one key; see entry_body() in entry.cpp.
local KEYED_ENTRY = '^{"v":1,"id":"[^"]*","type":"[^"]*","key":"'
local KEY_POSITION = 50

-- Corrects the key of a claim that another program wrote or deleted: it is not the one of the entry
-- or, of an event that could not be settled the first time, its head is another event. Only heads
-- are pending, so the event is the head of its key, unless that has another one in its place.
local function correct_key(id, claim, entry)
  if claim.key == '' then
    if not string.find(entry, KEYED_ENTRY) then return end
  elseif claim.deliveries == 0 then
    if string.find(entry, '","key":"' .. claim.key .. '"', KEY_POSITION, true) then return end
  end
  if claim.key ~= '' and head_of(claim.key) == id then return end
  claim.key = key_of_entry(id)
  local head = claim.key ~= '' and head_of(claim.key)
  if claim.key == '' or head == id then return end
  if head and (due_of(head) or call('ZSCORE', PARKED, head)) then
    claim.key = ''
  else
    set_head(claim.key, id)
  end
end

-- Claims an event that is due, and the run behind it. `entry` is false if the event has none: it
-- cannot be delivered, so it is removed. An event that was delivered before is handed out alone.
local function hand_out(id, entry, token, lease, run, budget, reply)
  if not entry then
    add_to_counter('orphans', 1)
    remove_and_promote(id)
    return
  end
  local claim = claim_of(id) or new_claim('')
  correct_key(id, claim, entry)
  local is_first_delivery = claim.deliveries == 0
  claim.deliveries = claim.deliveries + 1
  claim.token = token
  claim.run = 1
  claims[id] = claim
  due_times[id] = now + lease
  mark_changed(id)
  append_event(reply, budget, id, entry, claim)
  if claim.key ~= '' and is_first_delivery then extend_run(claim, run, budget, reply) end
end
