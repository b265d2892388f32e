-- Adds events: for publish.lua, schedule.lua, drain.lua and commit.lua.
-- Requires keys.lua, numbers.lua, records.lua, lane.lua.
--
-- An event is a table: id, key, due, body (the entry without id, time and sequence).
--
-- luacheck: push ignore 211 (a script uses some of them)

-- The event of four arguments: id, key, delay, body.
local function event_at(index)
  return {
    id = ARGV[index],
    key = ARGV[index + 1],
    due = now + tonumber(ARGV[index + 2]),
    body = ARGV[index + 3],
  }
end

-- The reply that says which quota is exceeded, how much is used and the limit; nil if all are kept.
-- ARGV begins with the quotas: events, bytes, milliseconds overdue; 0: no limit.
local function over_quota(new_events, new_bytes)
  local max_events, max_bytes, max_overdue = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
  if max_events > 0 then
    local used = call('HLEN', ENTRIES) + call('HLEN', TICKETS)
    if used + new_events > max_events then
      return {'full', 'events', decimal(used), decimal(max_events)}
    end
  end
  if max_bytes > 0 then
    local used = meta_number('bytes')
    if used + new_bytes > max_bytes then
      return {'full', 'bytes', decimal(used), decimal(max_bytes)}
    end
  end
  if max_overdue > 0 then
    local first = first_score(PENDING)
    if first and now - first > max_overdue then
      return {'full', 'overdue', decimal(now - first), decimal(max_overdue)}
    end
  end
  return nil
end

-- Returns which events (by index) are stored already, were delivered within the window, or occur
-- earlier in the list; then the number of the others and the bytes of their bodies.
local function find_duplicates(events, window)
  local ids = {}
  for i, event in ipairs(events) do ids[i] = event.id end
  local entries = call('HMGET', ENTRIES, unpack(ids))
  local delivered = window > 0 and call('ZMSCORE', DONE, unpack(ids)) or {}
  local duplicates, seen, new_events, new_bytes = {}, {}, 0, 0
  for i, id in ipairs(ids) do
    local is_remembered = delivered[i] and tonumber(delivered[i]) > now - window
    if entries[i] or seen[id] or is_remembered then
      duplicates[i] = true
    else
      seen[id] = true
      new_events = new_events + 1
      new_bytes = new_bytes + #events[i].body
    end
  end
  return duplicates, new_events, new_bytes
end

-- key -> id of its head, for the keys of the new events; false: the key has no event.
local function read_head_ids(events, duplicates)
  local keys, head_ids = {}, {}
  for i, event in ipairs(events) do
    if not duplicates[i] and event.key ~= '' and head_ids[event.key] == nil then
      head_ids[event.key] = false
      keys[#keys + 1] = event.key
    end
  end
  if #keys > 0 then
    for i, id in ipairs(call('HMGET', HEADS, unpack(keys))) do head_ids[keys[i]] = id end
  end
  return head_ids
end

local function format_entry(event, sequence)
  return '{"v":1,"id":"' .. event.id .. '",' .. event.body .. ',"createdAt":' .. decimal(now) ..
    ',"seq":' .. decimal(sequence) .. '}'
end

-- Adds the events that are not duplicates. An event whose key has a head follows it; any other is
-- pending. Returns a text with 1 (added) or 0 (duplicate) for each event.
local function add_events(events, duplicates)
  local head_ids = read_head_ids(events, duplicates)
  local meta = call('HMGET', META, 'seq', 'clock')
  local sequence = last_sequence(meta[1])
  local first_before = first_score(PENDING)
  local earliest
  local added, entries, scores, records, new_heads, followers = {}, {}, {}, {}, {}, {}
  for i, event in ipairs(events) do
    local id, key = event.id, event.key
    if duplicates[i] then
      added[i] = '0'
      add_to_counter('duplicates', 1)
    else
      added[i] = '1'
      sequence = sequence + 1
      local entry = format_entry(event, sequence)
      entries[#entries + 1] = id
      entries[#entries + 1] = entry
      add_to_counter('bytes', #entry)
      add_to_counter('published', 1)
      if key ~= '' and head_ids[key] then
        followers[#followers + 1] = 0
        followers[#followers + 1] = follower_member(key, sequence, event.due, id)
      else
        if key ~= '' then
          head_ids[key] = id
          new_heads[#new_heads + 1] = key
          new_heads[#new_heads + 1] = id
          records[#records + 1] = id
          records[#records + 1] = UNCLAIMED .. key
        end
        scores[#scores + 1] = decimal(event.due)
        scores[#scores + 1] = id
        if not earliest or event.due < earliest then earliest = event.due end
      end
    end
  end
  if #entries > 0 then
    call('HSET', ENTRIES, unpack(entries))
    call('HSET', META, 'seq', decimal(sequence))
    -- The latest time of a publishing, to a tenth of a second; see claim.lua.
    if now > (whole_number(meta[2]) or 0) + 100 then call('HSET', META, 'clock', decimal(now)) end
  end
  if #scores > 0 then call('ZADD', PENDING, unpack(scores)) end
  if #records > 0 then call('HSET', CLAIMS, unpack(records)) end
  if #new_heads > 0 then call('HSET', HEADS, unpack(new_heads)) end
  if #followers > 0 then call('ZADD', FOLLOWERS, unpack(followers)) end
  if earliest and (not first_before or earliest < first_before) then wake() end
  return table.concat(added)
end
-- luacheck: pop
