-- Confirms one inconsistency that a check found, and repairs it if asked to. The check reads in
-- many steps while others write, so each finding is checked again here.
-- Requires keys.lua, numbers.lua, records.lua, lane.lua.
--
-- ARGV: kind, subject (an id, a follower member, a key, a field of META, or the number of bytes
-- found), repair (1 or 0), then more by kind. Reply: 1 if it is inconsistent, otherwise 0; of
-- `bytes` the difference.
local kind, subject, repairs = ARGV[1], ARGV[2], ARGV[3] == '1'
local checks = {}

local function make_head(key, id)
  call('HSET', HEADS, key, id)
  if call('HEXISTS', CLAIMS, id) == 0 then call('HSET', CLAIMS, id, UNCLAIMED .. key) end
end

local function make_follower(key, id)
  call('ZADD', FOLLOWERS, 0, follower_member(key, next_sequence(), now, id))
end

local function make_pending(id)
  call('ZADD', PENDING, decimal(now), id)
  wake()
end

-- An id in PENDING or PARKED without an entry.
local function check_without_entry(set)
  if call('HEXISTS', ENTRIES, subject) == 1 or not call('ZSCORE', set, subject) then return 0 end
  if repairs then
    call('ZREM', set, subject)
    call('HDEL', CLAIMS, subject)
    call('HDEL', ERRORS, subject)
  end
  return 1
end
function checks.pending() return check_without_entry(PENDING) end
function checks.parked() return check_without_entry(PARKED) end

-- A follower without an entry.
function checks.follower()
  local has_entry = call('HEXISTS', ENTRIES, follower_id(subject)) == 1
  if has_entry or not call('ZSCORE', FOLLOWERS, subject) then return 0 end
  if repairs then call('ZREM', FOLLOWERS, subject) end
  return 1
end

local function is_follower(key, id)
  local offset = 0
  repeat
    local page = read_followers(key, offset, 1000)
    for _, member in ipairs(page) do
      if follower_id(member) == id then return true end
    end
    offset = offset + #page
  until #page < 1000
  return false
end

-- An entry that is neither pending, parked nor a follower. ARGV[4]: its key.
function checks.entry()
  local id, key = subject, ARGV[4]
  if call('HEXISTS', ENTRIES, id) == 0 then return 0 end
  if call('ZSCORE', PENDING, id) or call('ZSCORE', PARKED, id) then return 0 end
  if key ~= '' and is_follower(key, id) then return 0 end
  if not repairs then return 1 end
  local head = key ~= '' and call('HGET', HEADS, key)
  if head and head ~= id then
    make_follower(key, id)
  else
    if key ~= '' then make_head(key, id) end
    make_pending(id)
  end
  return 1
end

-- A key with followers but without a head that is pending or parked.
function checks.key()
  local key = subject
  local head = call('HGET', HEADS, key)
  if head and (call('ZSCORE', PENDING, head) or call('ZSCORE', PARKED, head)) then return 0 end
  local first = read_followers(key, 0, 1)[1]
  if not first then
    if head and repairs and call('HEXISTS', ENTRIES, head) == 0 then call('HDEL', HEADS, key) end
    return 0
  end
  if repairs then
    call('ZREM', FOLLOWERS, first)
    make_head(key, follower_id(first))
    make_pending(follower_id(first))
  end
  return 1
end

-- A claim record that no script wrote, or that has another key than its event. ARGV[4]: the key of
-- the event.
function checks.claim()
  local id, key = subject, ARGV[4]
  if call('HEXISTS', ENTRIES, id) == 0 then return 0 end
  local record = call('HGET', CLAIMS, id)
  local claim = record and read_claim(record)
  local is_pending = call('ZSCORE', PENDING, id)
  local head = key ~= '' and call('HGET', HEADS, key)
  if claim then
    -- If the claim agrees with the head of its key, the entry is wrong; a claim of it parks it. An
    -- event that is neither pending nor a head gets its key when it is promoted.
    if claim.key == key or call('HGET', HEADS, claim.key) == id then return 0 end
    if not is_pending and head ~= id then return 0 end
  elseif not record then
    -- A follower has no record before it was handed out, nor has an event without a key.
    if key == '' or not (is_pending or call('ZSCORE', PARKED, id)) then return 0 end
  end
  if not repairs then return 1 end
  claim = claim or new_claim(key)
  claim.key = key
  call('HSET', CLAIMS, id, format_claim(claim))
  if is_pending and head and head ~= id then
    call('ZREM', PENDING, id)
    make_follower(key, id)
  elseif is_pending and key ~= '' then
    call('HSET', HEADS, key, id)
  end
  return 1
end

-- A number of META that no script wrote.
function checks.meta()
  local name = subject
  local text = call('HGET', META, name)
  if not text or whole_number(text) then return 0 end
  if repairs then
    if name == 'token' or name == 'fence' then next_number(name)
    elseif name == 'seq' then next_sequence()
    else call('HSET', META, name, '0') end
  end
  return 1
end

-- The counter of bytes. ARGV[4], ARGV[5]: `seq` and `acked` before the check (or empty), ARGV[6]:
-- number of entries found. If one of them differs now, the bytes cannot be compared.
function checks.bytes()
  local acked_before = ARGV[5] ~= '' and ARGV[5]
  if call('HGET', META, 'seq') ~= ARGV[4] or call('HGET', META, 'acked') ~= acked_before then
    return 0
  end
  if call('HLEN', ENTRIES) ~= tonumber(ARGV[6]) then return 0 end
  local difference = meta_number('bytes') - tonumber(subject)
  if repairs and difference ~= 0 then call('HSET', META, 'bytes', subject) end
  return difference
end

return checks[kind]()
