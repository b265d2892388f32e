-- Checks conditions, writes the caller's keys and publishes events, in one step.
-- Requires keys.lua, numbers.lua, records.lua, lane.lua, state.lua, add.lua.
--
-- KEYS from 14 on: the caller's keys.
-- ARGV: three quotas, dedup window, dedup limit, id of the event whose effect this is (or empty),
-- its fence (or 0), its key, number of conditions, of writes, of events; then conditions and writes
-- (each: kind, index in KEYS, field, value), then events (each: id, key, delay, body).
-- Reply, one of:
--   done, a text with 1 (added) or 0 (duplicate) for each event
--   applied         the effect was applied before
--   stale           the claim was lost
--   failed, index   this condition does not hold
--   wrong, key      this key has another type
--   number, key     this key is not a number
--   full, ...       see add.lua
--
-- All checks come before the first write: Redis does not undo the writes of a script that fails.
local window, limit = tonumber(ARGV[4]), tonumber(ARGV[5])
local effect_id, effect_fence, effect_key = ARGV[6], ARGV[7], ARGV[8]
local condition_count, write_count, event_count =
  tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
local first_condition = 12
local first_write = first_condition + 4 * condition_count
local first_event = first_write + 4 * write_count

-- A condition or a write: kind, key, field, value.
local function operation_at(index)
  return ARGV[index], KEYS[tonumber(ARGV[index + 1])], ARGV[index + 2], ARGV[index + 3]
end

local function type_of(key) return call('TYPE', key).ok end

-- The string of a key, or the field of a hash; nil if there is none. The second value is the key if
-- it has another type.
local function value_of(key, field)
  local key_type = type_of(key)
  if key_type == 'none' then return nil end
  if key_type ~= (field == '' and 'string' or 'hash') then return nil, key end
  if field == '' then return call('GET', key) end
  return call('HGET', key, field) or nil
end

local function check_effect()
  if effect_id == '' then return nil end
  local applied_at = call('ZSCORE', DONE, 'e:' .. effect_id)
  if applied_at and tonumber(applied_at) > now - window then return {'applied'} end
  if effect_fence ~= '0' and not held_claim(effect_id, effect_key, effect_fence, true) then
    return {'stale'}
  end
  return nil
end

local function check_conditions()
  for i = 1, condition_count do
    local kind, key, field, expected = operation_at(first_condition + 4 * (i - 1))
    local holds
    if kind == 'exists' then
      holds = call('EXISTS', key) == 1
    elseif kind == 'absent' then
      holds = call('EXISTS', key) == 0
    else
      local value, wrong_key = value_of(key, field)
      if wrong_key then return {'wrong', wrong_key} end
      if kind == 'equals' then holds = value == expected else holds = value == nil end
    end
    if not holds then return {'failed', i - 1} end
  end
  return nil
end

local function check_writes()
  for i = 1, write_count do
    local kind, key, field = operation_at(first_write + 4 * (i - 1))
    local key_type = type_of(key)
    if key_type ~= 'none' and kind ~= 'erase' then
      local in_hash = kind == 'set_field' or kind == 'erase_field' or kind == 'add_to_field'
      if key_type ~= (in_hash and 'hash' or 'string') then return {'wrong', key} end
      if kind == 'add' or kind == 'add_to_field' then
        local value = value_of(key, kind == 'add' and '' or field)
        -- Only as Redis writes numbers: INCRBY fails on a leading zero, after other writes.
        local is_number = value == '0' or (value and string.match(value, '^-?[1-9]%d*$'))
        if value and (#value > 15 or not is_number) then return {'number', key} end
      end
    end
  end
  return nil
end

local function write_all()
  for i = 1, write_count do
    local kind, key, field, value = operation_at(first_write + 4 * (i - 1))
    if kind == 'set' then call('SET', key, value)
    elseif kind == 'erase' then call('DEL', key)
    elseif kind == 'set_field' then call('HSET', key, field, value)
    elseif kind == 'erase_field' then call('HDEL', key, field)
    elseif kind == 'add' then call('INCRBY', key, value)
    else call('HINCRBY', key, field, value) end
  end
end

local refusal = check_effect() or check_conditions() or check_writes()
if refusal then return refusal end
local events, duplicates, new_events, new_bytes = {}, {}, 0, 0
for i = 1, event_count do events[i] = event_at(first_event + 4 * (i - 1)) end
if event_count > 0 then duplicates, new_events, new_bytes = find_duplicates(events, window) end
if new_events > 0 then
  local full = over_quota(new_events, new_bytes)
  if full then return full end
end
write_all()
local added = event_count > 0 and add_events(events, duplicates) or ''
if effect_id ~= '' then
  local exists = call('HEXISTS', ENTRIES, effect_id) == 1
  call('ZADD', DONE, decimal(exists and UNEXPIRING or now), 'e:' .. effect_id)
  trim_done(window, limit)
end
write_counters()
return {'done', added}
