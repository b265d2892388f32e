-- The two records that scripts keep as text. Both are a wire format: processes of other versions
-- read and write them at the same time.
--
-- Claim record, a value of CLAIMS. The head of each key has one, and every event that was claimed
-- before. Seven fields, separated by colons:
--
--   1 token         fence of the claim that holds the event; 0: not claimed
--   2 deliveries    number of times the event was handed out
--   3 attempts      number of failures that handlers reported
--   4 replays       number of times it came back from PARKED
--   5 first_failed  time of its first failure; 0: none
--   6 run           if token is not 0: number of events of the key that the token covers, this
--                   one included
--     parked_by     if token is 0: token of the settlement that parked the event with the policy
--                   `park`, while followers are still to be parked; otherwise 0. Such an event
--                   stays in PENDING, so that the next claim continues. A settlement that comes
--                   again with this token gets the same reply.
--   7 key           ordering key of the event; empty: none. May contain colons
--
-- Follower, a member of FOLLOWERS: an event behind the head of its key.
--
--   key, NUL, 16 digits: sequence, 15 digits: time when it is due, 36 characters: id
--
-- All scores are 0, so members are sorted by their bytes: by key, then by sequence.
--
-- Other programs can write to the store. A claim record that no script wrote counts as a new one
-- with the key of its entry; this is the only use of entries in scripts.
-- Requires keys.lua, numbers.lua.
--
-- luacheck: push ignore 211 (a script uses some of them)
local CLAIM_PATTERN = '^(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(.*)$'
-- Claim record of an event that was never claimed; its key follows.
local UNCLAIMED = '0:0:0:0:0:0:'

local function new_claim(key)
  return {
    token = '0',
    deliveries = 0,
    attempts = 0,
    replays = 0,
    first_failed = '0',
    run = 0,
    parked_by = '0',
    key = key,
  }
end

-- Returns nil if no script wrote the text. inspect.cpp has the same limits.
local function read_claim(text)
  local token, deliveries, attempts, replays, first_failed, sixth, key =
    string.match(text, CLAIM_PATTERN)
  if not token or #deliveries > 9 or #attempts > 9 or #replays > 9 then return nil end
  if not (whole_number(token) and whole_number(first_failed) and whole_number(sixth)) then
    return nil
  end
  local claimed = token ~= '0'
  return {
    token = token,
    deliveries = tonumber(deliveries),
    attempts = tonumber(attempts),
    replays = tonumber(replays),
    first_failed = first_failed,
    run = claimed and tonumber(sixth) or 0,
    parked_by = claimed and '0' or sixth,
    key = key,
  }
end

-- The key in an entry; empty if it has none or cannot be read.
local function key_of_entry(id)
  local is_json, entry = pcall(cjson.decode, call('HGET', ENTRIES, id) or '')
  local has_key = is_json and type(entry) == 'table' and type(entry.key) == 'string'
  return has_key and entry.key or ''
end

-- Returns false if `text` is false: the event has no claim record.
local function parse_claim(text, id)
  if not text then return false end
  return read_claim(text) or new_claim(key_of_entry(id))
end

local function format_claim(claim)
  local sixth = claim.token == '0' and claim.parked_by or claim.run
  return claim.token .. ':' .. claim.deliveries .. ':' .. claim.attempts .. ':' .. claim.replays ..
    ':' .. claim.first_failed .. ':' .. sixth .. ':' .. claim.key
end

-- Whether the event was published without a delay, if this was its time then: its entry was written
-- at the same time. Such an event is due, also if the clock was ahead when it was published.
local function is_without_delay(entry, due)
  local created = string.match(string.sub(entry, -60), '"createdAt":(%d+),"seq":%d+}$')
  return tonumber(created) == due
end

local function follower_member(key, sequence, due, id)
  return key .. '\0' .. string.format('%016.0f%015.0f', sequence, due) .. id
end

local function follower_id(member) return string.sub(member, -36) end

local function follower_due(member) return whole_number(string.sub(member, -51, -37)) or now end

local function read_followers(key, offset, limit)
  local first, last = '[' .. key .. '\0', '(' .. key .. '\1'
  return call('ZRANGEBYLEX', FOLLOWERS, first, last, 'LIMIT', offset, limit)
end
-- luacheck: pop
