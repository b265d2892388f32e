-- Names of the keys of a lane, and the time. Comes first in every script.
--
-- KEYS always begins with these, in this order (lane.cpp). `time` is a list of seconds and
-- microseconds; the line before this file defines it (scripts.cpp).
--
-- luacheck: read globals time
-- luacheck: push ignore 211 (a script uses some of them)
local ENTRIES = KEYS[1] -- hash: id -> entry, a JSON text (read only by records.lua)
local PENDING = KEYS[2] -- sorted set: id by the time when it may be claimed; claimed: end of lease
local EXPIRY = KEYS[3] -- sorted set: ticket by the time when it expires
local LOCK = KEYS[4] -- string: owner|fence
local CLAIMS = KEYS[5] -- hash: id -> claim record (records.lua)
local HEADS = KEYS[6] -- hash: ordering key -> id of its first event
local FOLLOWERS = KEYS[7] -- sorted set, all with score 0: follower members (records.lua)
local PARKED = KEYS[8] -- sorted set: id by the time when it was parked
local DONE = KEYS[9] -- sorted set, by time: id delivered, e:id effect applied, t:ticket fired
local ERRORS = KEYS[10] -- hash: id -> last error
local TICKETS = KEYS[11] -- hash: ticket -> length of the event's key, `:`, key, body of the entry
local META = KEYS[12] -- hash: layout, lanes, seq, token, fence, paused, clock, swept, counters
local WAKE = KEYS[13] -- list: one element when a waiting worker should claim

-- Score in DONE of e:id while the event exists: the mark of an effect does not expire before its
-- event is gone. Then it gets the time of that moment, and its dedup window starts.
local UNEXPIRING = 9000000000000000

-- Times are in milliseconds since 1970 unless the name says otherwise.
local call = redis.call
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
-- luacheck: pop
