-- Parks events behind a parked head: for claim.lua and park_followers.lua.
-- Requires keys.lua, numbers.lua, records.lua, lane.lua, state.lua.

-- Parks up to `most` followers of a key whose head was parked with the policy `park`. Returns how
-- many followers remain and how many were parked. When none remains, the key has no head any more.
local function park_followers_of(key, most)
  local blocker = head_of(key)
  if not blocker or not call('ZSCORE', PARKED, blocker) then return 0, 0 end
  -- A head that was parked with the policy `block` stays: this call comes from an older parking.
  local blocker_claim = claim_of(blocker)
  if not blocker_claim or blocker_claim.parked_by == '0' then return 0, 0 end

  if most > 0 then follower_at(key, most) end
  local queue = queues[key]
  local count = queue and math.min(most, #queue.members) or 0
  local scores, errors, records = {}, {}, {}
  for i = 1, count do
    local member = queue.members[i]
    local id = follower_id(member)
    removed_members[#removed_members + 1] = member
    local claim = claim_of(id) or new_claim(key)
    claim.token, claim.run, claim.parked_by, claim.key = '0', 0, '0', key
    scores[#scores + 1] = decimal(now)
    scores[#scores + 1] = id
    errors[#errors + 1] = id
    errors[#errors + 1] = 'parked behind ' .. blocker
    records[#records + 1] = id
    records[#records + 1] = format_claim(claim)
  end
  if count > 0 then
    call('ZADD', PARKED, unpack(scores))
    call('HSET', ERRORS, unpack(errors))
    call('HSET', CLAIMS, unpack(records))
    add_to_counter('parkings', count)
  end

  local total = call('ZLEXCOUNT', FOLLOWERS, '[' .. key .. '\0', '(' .. key .. '\1')
  local remaining = total - count
  if remaining == 0 then
    set_head(key, false)
    call('ZREM', PENDING, blocker)
  end
  return remaining, count
end
