-- Confirms inconsistencies that a check found, and repairs them if asked to. The check reads in
-- many steps while others write, so each finding is checked again here. Each of them takes a
-- bounded number of steps, however many events the lane or the key has.
-- Requires keys.lua, numbers.lua, records.lua, lane.lua, add.lua, ticket.lua.
--
-- ARGV: repair (1 or 0), then for each finding its kind and four arguments, which the function of
-- that kind in `checks` names; empty: none. Reply: a text with 1 (confirmed) or 0 for each finding,
-- and the difference that `bytes` found.
local repairs = ARGV[1] == '1'
local checks = {}
local bytes_difference = 0

-- The latest time that an outbox writes: a delay is at most ten years.
local LATEST_DUE = now + 24 * 3661 * 3600 * 1000
-- The latest expiry of a ticket: the year 9970, and some more.
local LATEST_EXPIRY = 2.6e14

local function has_entry(id) return call('HEXISTS', ENTRIES, id) == 1 end

local function is_valid_due(score) return score >= 0 and score <= LATEST_DUE end

-- The sequence at the end of an entry; 0 if it cannot be read.
local function sequence_of(id)
  local entry = call('HGET', ENTRIES, id) or ''
  return whole_number(string.match(string.sub(entry, -40), '"seq":(%d+)}$')) or 0
end

-- The follower member of an event with this key and sequence; nil if it is not a follower.
local function member_of(key, sequence, id)
  local prefix = key .. '\0' .. string.format('%016.0f', sequence)
  for _, member in ipairs(call('ZRANGEBYLEX', FOLLOWERS, '[' .. prefix, '(' .. prefix .. ':',
    'LIMIT', 0, 10)) do
    if follower_id(member) == id then return member end
  end
  return nil
end

local function make_pending(id, due)
  call('ZADD', PENDING, decimal(due), id)
  wake()
end

-- The event becomes the head of the key. Its claim ends, unless it was the head of this key before.
local function make_head(key, id, due)
  call('HSET', HEADS, key, id)
  local claim = read_claim(call('HGET', CLAIMS, id) or '')
  if not claim or claim.key ~= key then
    claim = claim or new_claim(key)
    claim.key, claim.token, claim.parked_by = key, '0', '0'
    call('HSET', CLAIMS, id, format_claim(claim))
  end
  if due then make_pending(id, due) end
end

-- The event stands behind the head of its key, in the order of sequences. A claim of it ends.
local function make_follower(key, sequence, id, due)
  call('ZREM', PENDING, id)
  local claim = read_claim(call('HGET', CLAIMS, id) or '')
  if claim and claim.token ~= '0' then
    claim.token, claim.parked_by = '0', '0'
    call('HSET', CLAIMS, id, format_claim(claim))
  end
  if not member_of(key, sequence, id) then
    call('ZADD', FOLLOWERS, 0, follower_member(key, sequence, due, id))
  end
end

-- The first follower that has an entry becomes the head; without one the key has no head.
local function promote_first(key)
  for _, member in ipairs(read_followers(key, 0, 100)) do
    call('ZREM', FOLLOWERS, member)
    local id = follower_id(member)
    if has_entry(id) then
      local due = follower_due(member)
      make_head(key, id, is_valid_due(due) and due or now)
      return
    end
  end
  call('HDEL', HEADS, key)
end

-- Whether the id is an event of this key that can be its head: it is pending or parked.
local function is_sound_head(key, id)
  if not id or not has_entry(id) then return false end
  if not (call('ZSCORE', PENDING, id) or call('ZSCORE', PARKED, id)) then return false end
  local claim = read_claim(call('HGET', CLAIMS, id) or '')
  return (claim and claim.key == key) or key_of_entry(id) == key
end

-- An id without an entry in PENDING, PARKED, CLAIMS or ERRORS.
function checks.gone(id)
  if has_entry(id) then return false end
  local is_placed = call('ZSCORE', PENDING, id) or call('ZSCORE', PARKED, id)
  if not is_placed and call('HEXISTS', CLAIMS, id) == 0 and call('HEXISTS', ERRORS, id) == 0 then
    return false
  end
  if repairs then
    call('ZREM', PENDING, id)
    call('ZREM', PARKED, id)
    call('HDEL', CLAIMS, id)
    call('HDEL', ERRORS, id)
    call('ZADD', DONE, 'XX', 'LT', decimal(now), 'e:' .. id)
  end
  return true
end

-- A follower without an entry.
function checks.follower(member)
  if has_entry(follower_id(member)) or not call('ZSCORE', FOLLOWERS, member) then return false end
  if repairs then call('ZREM', FOLLOWERS, member) end
  return true
end

-- A follower with another key, sequence, time or score than its event has, or one that is the head
-- or parked as well. `record`: the claim record that the check read; a replay changes it.
function checks.misplaced(member, key, sequence, record)
  local id = follower_id(member)
  if not call('ZSCORE', FOLLOWERS, member) or not has_entry(id) then return false end
  if (call('HGET', CLAIMS, id) or '') ~= record then return false end
  if repairs then
    call('ZREM', FOLLOWERS, member)
    local due = follower_due(member)
    if call('HGET', HEADS, key) ~= id then
      call('ZREM', PARKED, id)
      make_follower(key, tonumber(sequence), id, is_valid_due(due) and due or now)
    end
  end
  return true
end

-- An entry that is neither pending, parked nor a follower. The check sends the events of a key in
-- the order of their sequences.
function checks.place(id, key, sequence, record)
  if not has_entry(id) or call('ZSCORE', PENDING, id) or call('ZSCORE', PARKED, id) then
    return false
  end
  sequence = tonumber(sequence)
  if (call('HGET', CLAIMS, id) or '') ~= record then return false end
  if key ~= '' and member_of(key, sequence, id) then return false end
  if not repairs then return true end
  local head = key ~= '' and call('HGET', HEADS, key)
  if key == '' then
    make_pending(id, now)
  elseif head == id then
    make_head(key, id, now)
  elseif is_sound_head(key, head) then
    make_follower(key, sequence, id, now)
  else
    make_follower(key, sequence, id, now)
    promote_first(key)
  end
  return true
end

-- A key without a sound head. `id`: an event of the key that is pending, but not the head; or, if
-- `is_blocking` is 1, the parked event that blocked the key; or empty: the first follower is next.
function checks.key(key, id, sequence, is_blocking)
  local head = call('HGET', HEADS, key)
  local is_sound = is_sound_head(key, head)
  local place = is_blocking == '1' and PARKED or PENDING
  if id == '' or head == id or not has_entry(id) or not call('ZSCORE', place, id) then
    if is_sound or not (head or read_followers(key, 0, 1)[1]) then return false end
    -- The check proposed an event that has moved since: the next check sees more.
    if id ~= '' then return true end
    if repairs then promote_first(key) end
    return true
  end
  if is_blocking == '1' then
    if is_sound then return false end
    if repairs then make_head(key, id, nil) end
    return true
  end
  if not repairs then return true end
  sequence = tonumber(sequence)
  local is_head_pending = is_sound and call('ZSCORE', PENDING, head)
  if member_of(key, sequence, id) then
    -- It is a follower, too.
    call('ZREM', PENDING, id)
    if not is_sound then promote_first(key) end
  elseif is_head_pending and sequence_of(head) < sequence then
    make_follower(key, sequence, id, now)
  else
    if is_head_pending then make_follower(key, sequence_of(head), head, now) end
    make_head(key, id, nil)
    wake()
  end
  return true
end

-- A claim record that no script wrote, or that has another key than its event.
function checks.claim(id, key, seen)
  local record = call('HGET', CLAIMS, id)
  if not has_entry(id) or (record or '') ~= seen then return false end
  local claim = record and read_claim(record)
  local is_placed = call('ZSCORE', PENDING, id) or call('ZSCORE', PARKED, id)
  if claim then
    -- If the claim agrees with the head of its key, the entry is wrong; a claim of it parks it. A
    -- follower gets its key when it is promoted.
    local is_head = key ~= '' and call('HGET', HEADS, key) == id
    if claim.key == key or not is_placed then return false end
    if not is_head and call('HGET', HEADS, claim.key) == id then return false end
  elseif not record then
    -- A follower has no record before it was handed out, nor has an event without a key.
    if key == '' or not is_placed then return false end
  end
  if repairs then
    claim = claim or new_claim(key)
    claim.key = key
    call('HSET', CLAIMS, id, format_claim(claim))
  end
  return true
end

-- An event whose time no outbox wrote.
function checks.due(id)
  local score = call('ZSCORE', PENDING, id)
  if not score or is_valid_due(tonumber(score)) then return false end
  if repairs then make_pending(id, now) end
  return true
end

-- An event that is parked, and pending or following as well. It is delivered.
function checks.parked_twice(id, key, sequence)
  if not call('ZSCORE', PARKED, id) then return false end
  local claim = read_claim(call('HGET', CLAIMS, id) or '')
  local is_pending = call('ZSCORE', PENDING, id) and not (claim and claim.parked_by ~= '0')
  if not is_pending and not (key ~= '' and member_of(key, tonumber(sequence), id)) then
    return false
  end
  if repairs then call('ZREM', PARKED, id) end
  return true
end

-- A field of META that no script wrote, or a number that is less than one that was handed out
-- (`smallest`).
function checks.meta(name, smallest)
  local text = call('HGET', META, name)
  local number, least = whole_number(text), tonumber(smallest) or 0
  if name == 'paused' then
    if not text or text == '0' or text == '1' then return false end
  elseif (number and number >= least) or (not text and least == 0) then
    return false
  end
  if repairs then
    if name == 'token' or name == 'fence' then
      local largest = math.max(number or 0, least, meta_number('token'), meta_number('fence'))
      number = math.max(largest + 1, now_us)
    elseif name == 'seq' then
      number = math.max(number or now_us, least)
    else
      number = 0
    end
    call('HSET', META, name, decimal(number))
  end
  return true
end

-- The counter of bytes. `seq` and `acked` before the check (or empty), number of entries that were
-- counted. If one of them differs now, the bytes cannot be compared.
function checks.bytes(bytes, seq, acked, entries)
  if (call('HGET', META, 'seq') or '') ~= seq or (call('HGET', META, 'acked') or '') ~= acked then
    return false
  end
  if call('HLEN', ENTRIES) ~= tonumber(entries) then return false end
  bytes_difference = meta_number('bytes') - tonumber(bytes)
  if repairs and bytes_difference ~= 0 then call('HSET', META, 'bytes', bytes) end
  return bytes_difference ~= 0
end

-- A ticket without a text, or without a valid time. In the second case its event is parked, with
-- the id `id`: its time is unknown.
function checks.ticket(ticket, id)
  local expires, text = call('ZSCORE', EXPIRY, ticket), call('HGET', TICKETS, ticket)
  local is_valid = expires and tonumber(expires) >= 0 and tonumber(expires) <= LATEST_EXPIRY
  if (text and is_valid) or not (text or expires) then return false end
  if not repairs then return true end
  call('ZREM', EXPIRY, ticket)
  call('HDEL', TICKETS, ticket)
  if text then
    local key, body = parse_ticket(text)
    local entry = format_entry({id = id, body = body}, next_sequence())
    call('HSET', ENTRIES, id, entry)
    call('HSET', CLAIMS, id, UNCLAIMED .. key)
    call('HSET', ERRORS, id, "the time of the ticket '" .. ticket .. "' was lost")
    call('ZADD', PARKED, decimal(now), id)
    add_to_counter('bytes', #entry)
    add_to_counter('published', 1)
    add_to_counter('parkings', 1)
  end
  return true
end

-- A remembered id with a time in the future (an hour more than clocks go wrong), or the mark of an
-- effect whose event is gone.
function checks.remembered(member)
  local score = tonumber(call('ZSCORE', DONE, member))
  if not score or score <= now + 3600000 then return false end
  local is_mark = string.sub(member, 1, 2) == 'e:' and has_entry(string.sub(member, 3))
  if is_mark and score == UNEXPIRING then return false end
  if repairs then call('ZADD', DONE, decimal(is_mark and UNEXPIRING or now), member) end
  return true
end

-- A lock that no script wrote, or that has no end.
function checks.lock()
  local value = call('GET', LOCK)
  local is_valid = value and string.find(value, '|%d+$')
  if not value or (is_valid and call('PTTL', LOCK) >= 0) then return false end
  if repairs then
    if is_valid then call('PEXPIRE', LOCK, 10000) else call('DEL', LOCK) end
  end
  return true
end

local confirmed = {}
for i = 2, #ARGV, 5 do
  local is_confirmed = checks[ARGV[i]](ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4])
  confirmed[#confirmed + 1] = is_confirmed and '1' or '0'
end
write_counters()
return {table.concat(confirmed), bytes_difference}
