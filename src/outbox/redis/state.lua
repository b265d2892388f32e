-- The states of events (docs/outbox-states.md) during one script: claims, heads of keys, followers,
-- times in PENDING. Each is read once. Changes stay in these tables until write_state() is called.
-- Requires keys.lua, numbers.lua, records.lua, lane.lua.
--
-- luacheck: push ignore 211 (a script uses some of them)

-- In each table nil means not read yet, and false means that Redis has no value.
local claims = {} -- id -> claim record as a table
local due_times = {} -- id -> score in PENDING; set to nil: write_state() leaves the score unchanged
local heads = {} -- key -> id of its first event
-- key -> {members: followers read so far, removed: how many of them were promoted, complete: all
-- followers were read}
local queues = {}

local changed_ids, is_changed = {}, {} -- claims and times that write_state() writes
local changed_keys, is_changed_key = {}, {} -- heads that write_state() writes
local removed_ids, is_removed = {}, {} -- events that write_state() deletes
local removed_members = {} -- followers that write_state() deletes
local followers_per_read = 1

local function claim_of(id)
  local claim = claims[id]
  if claim == nil then
    claim = parse_claim(call('HGET', CLAIMS, id), id)
    claims[id] = claim
  end
  return claim
end

local function due_of(id)
  local due = due_times[id]
  if due == nil then
    due = tonumber(call('ZSCORE', PENDING, id)) or false
    due_times[id] = due
  end
  return due
end

-- Reads claims and times of many events at once.
local function preload(ids)
  if #ids == 0 then return end
  local texts = call('HMGET', CLAIMS, unpack(ids))
  local scores = call('ZMSCORE', PENDING, unpack(ids))
  for i, id in ipairs(ids) do
    if claims[id] == nil then claims[id] = parse_claim(texts[i], id) end
    if due_times[id] == nil then due_times[id] = tonumber(scores[i]) or false end
  end
end

local function head_of(key)
  local id = heads[key]
  if id == nil then
    id = call('HGET', HEADS, key)
    heads[key] = id
  end
  return id
end

local function set_head(key, id)
  heads[key] = id
  if not is_changed_key[key] then
    is_changed_key[key] = true
    changed_keys[#changed_keys + 1] = key
  end
end

local function mark_changed(id)
  if not is_changed[id] then
    is_changed[id] = true
    changed_ids[#changed_ids + 1] = id
  end
end

local function remove_event(id)
  claims[id] = false
  due_times[id] = false
  if not is_removed[id] then
    is_removed[id] = true
    removed_ids[#removed_ids + 1] = id
  end
end

-- The n-th follower of a key that is still there, as a member of FOLLOWERS; nil if there are fewer.
local function follower_at(key, n)
  local queue = queues[key]
  if not queue then
    queue = {members = {}, removed = 0, complete = false}
    queues[key] = queue
  end
  local members = queue.members
  while not queue.complete and #members < queue.removed + n do
    local limit = math.max(queue.removed + n - #members, followers_per_read)
    local page = read_followers(key, #members, limit)
    for _, member in ipairs(page) do members[#members + 1] = member end
    queue.complete = #page < limit
  end
  return members[queue.removed + n]
end

-- Followers are sorted by their bytes only if all have the score 0. One that another program gave
-- another score hides the followers of other keys. Returns whether there were such scores.
local are_scores_checked = false
local function correct_follower_scores()
  if are_scores_checked then return false end
  are_scores_checked = true
  local members = call('ZRANGEBYSCORE', FOLLOWERS, '-inf', '(0', 'LIMIT', 0, 1000)
  for _, member in ipairs(call('ZRANGEBYSCORE', FOLLOWERS, '(0', '+inf', 'LIMIT', 0, 1000)) do
    members[#members + 1] = member
  end
  for _, member in ipairs(members) do call('ZADD', FOLLOWERS, 0, member) end
  return #members > 0
end

-- The first follower of a key becomes its head; without a follower the key has no head any more.
-- If `run` is not 0, the new head is claimed: the token covers it and run - 1 events behind it
-- until `deadline`. Otherwise it gets its own time.
local function promote_follower(key, run, token, deadline)
  local member = follower_at(key, 1)
  if not member and correct_follower_scores() then
    -- What this script has promoted is still in FOLLOWERS: it must not be read again.
    local queue = queues[key]
    for i = 1, queue.removed do call('ZREM', FOLLOWERS, queue.members[i]) end
    queues[key] = nil
    member = follower_at(key, 1)
  end
  if not member then
    set_head(key, false)
    return
  end
  queues[key].removed = queues[key].removed + 1
  removed_members[#removed_members + 1] = member
  local id = follower_id(member)
  set_head(key, id)
  local claim = claim_of(id) or new_claim(key)
  claim.key = key
  claim.run = run
  if run > 0 then
    claim.token = token
    claim.deliveries = claim.deliveries + 1
    due_times[id] = deadline
  else
    claim.token = '0'
    claim.parked_by = '0'
    local due = follower_due(member)
    if due > now and is_without_delay(call('HGET', ENTRIES, id) or '', due) then due = now end
    due_times[id] = due
  end
  claims[id] = claim
  mark_changed(id)
end

-- Removes an event. If it is the head of its key, the next event of the key becomes the head.
local function remove_and_promote(id)
  local claim = claim_of(id)
  local key = claim and claim.key or ''
  remove_event(id)
  if key ~= '' and head_of(key) == id then promote_follower(key, 0, '0', 0) end
end

-- The claim with this token that covers the event, and the id that has the claim record; nil if the
-- lease was lost. An event of a key is covered by the claim of the head. With `whole_run` it may
-- stand behind the head; otherwise it must be the head.
local function held_claim(id, key, token, whole_run)
  local holder = id
  if key ~= '' then
    holder = head_of(key)
    if not holder or (not whole_run and holder ~= id) then return nil end
  end
  local claim = claim_of(holder)
  local held = claim and token ~= '0' and claim.token == token and claim.key == key
  if not held or not due_of(holder) then return nil end
  return claim, holder
end

local function write_state()
  if #removed_ids > 0 then
    local bytes = 0
    for _, id in ipairs(removed_ids) do bytes = bytes + call('HSTRLEN', ENTRIES, id) end
    add_to_counter('bytes', -bytes)
    call('HDEL', ENTRIES, unpack(removed_ids))
    call('ZREM', PENDING, unpack(removed_ids))
    call('HDEL', CLAIMS, unpack(removed_ids))
    call('HDEL', ERRORS, unpack(removed_ids))
    -- The dedup window of their effects starts.
    if call('ZCOUNT', DONE, '(' .. decimal(now), '+inf') > 0 then
      local marks = {}
      for i, id in ipairs(removed_ids) do
        marks[2 * i - 1] = decimal(now)
        marks[2 * i] = 'e:' .. id
      end
      call('ZADD', DONE, 'XX', 'LT', unpack(marks))
    end
  end
  if #removed_members > 0 then call('ZREM', FOLLOWERS, unpack(removed_members)) end

  local new_heads, freed_keys = {}, {}
  for _, key in ipairs(changed_keys) do
    if heads[key] then
      new_heads[#new_heads + 1] = key
      new_heads[#new_heads + 1] = heads[key]
    else
      freed_keys[#freed_keys + 1] = key
    end
  end
  if #new_heads > 0 then call('HSET', HEADS, unpack(new_heads)) end
  if #freed_keys > 0 then call('HDEL', HEADS, unpack(freed_keys)) end

  local records, scores, unscheduled = {}, {}, {}
  for _, id in ipairs(changed_ids) do
    if not is_removed[id] then
      records[#records + 1] = id
      records[#records + 1] = format_claim(claims[id])
      local due = due_times[id]
      if due then
        scores[#scores + 1] = decimal(due)
        scores[#scores + 1] = id
      elseif due == false then
        unscheduled[#unscheduled + 1] = id
      end
    end
  end
  if #records > 0 then call('HSET', CLAIMS, unpack(records)) end
  if #scores > 0 then call('ZADD', PENDING, unpack(scores)) end
  if #unscheduled > 0 then call('ZREM', PENDING, unpack(unscheduled)) end
  write_counters()
end
-- luacheck: pop
