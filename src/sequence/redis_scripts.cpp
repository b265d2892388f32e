#include "sequence/redis_scripts.hpp"

#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::redis_scripts {

namespace {

/// Numbers as {upper, lower nine digits}: both are exact in a double.
constexpr std::string_view arithmetic = R"lua(
local half = 1000000000
local one = {0, 1}
local function read(text)
  if not text then return {0, 0} end
  local size = #text
  if size > 19 or not string.find(text, '^%d+$') then error('HOLDFAST this key holds no counter of a sequence') end
  if size <= 9 then return {0, tonumber(text)} end
  return {tonumber(string.sub(text, 1, size - 9)), tonumber(string.sub(text, size - 8))}
end
local function write(a)
  if a[1] == 0 then return string.format('%.0f', a[2]) end
  return string.format('%.0f%09.0f', a[1], a[2])
end
local function less(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end
local function least(a, b) if less(b, a) then return b end return a end
local function add(a, b)
  local low = a[2] + b[2]
  if low >= half then return {a[1] + b[1] + 1, low - half} end
  return {a[1] + b[1], low}
end
-- Nothing below 0: what is left of less than nothing is nothing.
local function minus(a, b)
  if less(a, b) then return {0, 0} end
  local low = a[2] - b[2]
  if low < 0 then return {a[1] - b[1] - 1, low + half} end
  return {a[1] - b[1], low}
end
-- A new one with every restart and every promotion; what it says was true on this server, in this life of it.
local function server()
  return string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
end
local key = KEYS[1]
local had = redis.call('HMGET', key, 'last', 'epoch', 'server', 'top')
local last, epoch = read(had[1]), had[2] or '1'
)lua";

constexpr std::string_view plain = R"lua(
local count, limit = read(ARGV[1]), read(ARGV[2])
if not less(last, limit) then
  if ARGV[3] ~= '1' then return {'end', epoch} end
  last, epoch = {0, 0}, write(add(read(epoch), one))
end
local first = add(last, one)
last = add(last, least(count, minus(limit, last)))
redis.call('HSET', key, 'last', write(last), 'epoch', epoch)
return {'granted', write(first), write(last), epoch}
)lua";

constexpr std::string_view from_super_block = R"lua(
local count, limit, seen, seen_epoch = read(ARGV[1]), read(ARGV[2]), read(ARGV[3]), ARGV[4]
local here = server()
local mine = had[3] == here
local top = read(had[4])
local brought = ARGV[5] ~= ''
-- What is left below what the caller saw is no reason to refuse what it brings.
if mine and epoch == seen_epoch and less(last, seen) then last = least(seen, top) end
if brought then
  local first, new_top, new_epoch = read(ARGV[5]), read(ARGV[6]), ARGV[7]
  -- Never back: one that was overtaken by a newer one on its way is left out.
  if not had[1] or less(read(epoch), read(new_epoch)) or (epoch == new_epoch and less(last, first)) then
    if mine and epoch == new_epoch and write(add(top, one)) == write(first) then
      top = new_top
    elseif not mine or less(minus(top, last), count) then
      last, top, epoch, mine = minus(first, one), new_top, new_epoch, true
    end
  end
end
if mine and epoch == seen_epoch and less(last, seen) then last = least(seen, top) end
local left = minus(least(top, limit), last)
local whole = not less(left, count)
if not mine or write(left) == '0' or (not whole and less(top, limit) and not brought) then return {'refill'} end
local first = add(last, one)
last = add(last, least(count, left))
redis.call('HSET', key, 'last', write(last), 'epoch', epoch, 'server', here, 'top', write(top))
return {'granted', write(first), write(last), epoch}
)lua";

constexpr std::string_view by_clock = R"lua(
local count, limit, rate, origin, skew = read(ARGV[1]), read(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local now = redis.call('TIME')
local function ordinals_until(microseconds)
  local seconds = math.floor(microseconds / 1000000)
  local ordinals = seconds * rate + math.floor((microseconds - seconds * 1000000) * rate / 1000000)
  return {math.floor(ordinals / half), ordinals % half}
end
local elapsed = (tonumber(now[1]) - origin) * 1000000 + tonumber(now[2])
if elapsed < 0 then error('HOLDFAST the clock of this server is before the origin of the fence') end
local here = server()
if had[3] ~= here then
  local beyond = ordinals_until(elapsed + skew)
  if less(last, beyond) then last = beyond end
  redis.call('HSET', key, 'last', write(last), 'epoch', epoch, 'server', here)
end
if not less(last, limit) then return {'end', epoch} end
local first = add(last, one)
local upto = add(last, least(count, minus(limit, last)))
local allowed = ordinals_until(elapsed)
if less(allowed, upto) then
  local missing = minus(upto, allowed)
  return {'wait', string.format('%.0f', math.ceil((missing[1] * half + missing[2]) * 1000000 / rate))}
end
redis.call('HSET', key, 'last', write(upto))
return {'granted', write(first), write(upto), epoch}
)lua";

constexpr std::string_view look = R"lua(
if not had[1] then return false end
return {write(last), epoch, (had[3] and had[3] == server()) and 1 or 0}
)lua";

constexpr std::string_view raise_plain = R"lua(
local wanted = read(ARGV[1])
if less(last, wanted) then last = wanted end
redis.call('HSET', key, 'last', write(last), 'epoch', epoch)
return {write(last), epoch}
)lua";

constexpr std::string_view raise_super = R"lua(
local wanted, below, below_epoch = read(ARGV[1]), read(ARGV[2]), ARGV[3]
local here = server()
local top = read(had[4])
if had[3] ~= here or less(read(epoch), read(below_epoch)) then
  -- Nothing is known here: everything that the store below granted may be in use.
  last, top, epoch = below, below, below_epoch
elseif less(last, wanted) then
  last = wanted
  if less(top, last) then top = last end
end
redis.call('HSET', key, 'last', write(last), 'epoch', epoch, 'server', here, 'top', write(top))
return {write(last), epoch}
)lua";

constexpr std::string_view replace_exactly = R"lua(
if not had[1] or had[1] ~= ARGV[1] or epoch ~= ARGV[2] then return 0 end
if ARGV[5] == '1' and had[3] and had[3] ~= server() then return 0 end
redis.call('HSET', key, 'last', ARGV[3], 'epoch', ARGV[4])
return 1
)lua";

constexpr std::string_view forget_exactly = R"lua(
if not had[1] or had[1] ~= ARGV[1] or epoch ~= ARGV[2] then return 0 end
redis.call('DEL', key)
return 1
)lua";

redis::script made(std::string_view body) { return redis::script(std::string(arithmetic).append(body)); }

}  // namespace

const redis::script& allocate() {
  static const auto held = made(plain);
  return held;
}
const redis::script& allocate_from_super_block() {
  static const auto held = made(from_super_block);
  return held;
}
const redis::script& allocate_by_clock() {
  static const auto held = made(by_clock);
  return held;
}
const redis::script& peek() {
  static const auto held = made(look);
  return held;
}
const redis::script& raise() {
  static const auto held = made(raise_plain);
  return held;
}
const redis::script& raise_super_block() {
  static const auto held = made(raise_super);
  return held;
}
const redis::script& replace() {
  static const auto held = made(replace_exactly);
  return held;
}
const redis::script& forget() {
  static const auto held = made(forget_exactly);
  return held;
}

}  // namespace HOLDFAST_NAMESPACE::redis_scripts
