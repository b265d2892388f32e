-- Numbers: the text of a number, and the numbers of META. Other programs can write to META, so a
-- number there is checked before it is used.
-- Requires keys.lua.
--
-- luacheck: push ignore 211 (a script uses some of them)

-- A whole number as text. tostring() would write a fence as 1.7e+15.
local function decimal(number) return string.format('%d', number) end

-- The number of a text that a script wrote; nil if it is another text. Numbers stay below 9e15,
-- where every whole number has a successor.
local function whole_number(text)
  if not text or #text > 16 or not string.match(text, '^%d+$') then return nil end
  local number = tonumber(text)
  return number < 9e15 and number or nil
end

-- A field of META; 0 if it is missing or not a number.
local function meta_number(name) return whole_number(call('HGET', META, name)) or 0 end

-- The largest token or fence of META and of all claim records, which begin with a token.
local function largest_fence()
  local largest = math.max(meta_number('token'), meta_number('fence'))
  local cursor = '0'
  repeat
    local page = call('HSCAN', CLAIMS, cursor, 'COUNT', 1000)
    cursor = page[1]
    for i = 2, #page[2], 2 do
      local token = whole_number(string.match(page[2][i], '^(%d+):'))
      if token and token > largest then largest = token end
    end
  until cursor == '0'
  return largest
end

-- The next token or fence: larger than all before it, and not behind the clock. If the last one
-- cannot be read, or a token is missing although events were claimed, it is larger than all that
-- can be found.
local function next_number(name)
  local text = call('HGET', META, name)
  local is_lost = text or (name == 'token' and call('HEXISTS', META, 'claims') == 1)
  local last = whole_number(text) or (is_lost and largest_fence()) or 0
  local number = math.max(last + 1, now_us)
  call('HSET', META, name, decimal(number))
  return number
end

-- The sequence of the last event that was published, from the field `seq` of META. Sequences count
-- from 1. If the last one cannot be read, or is missing although there are events, they continue
-- with the clock, which is larger than all before it.
local function last_sequence(text)
  local is_new = not text and call('EXISTS', ENTRIES) == 0
  return whole_number(text) or (is_new and 0 or now_us)
end

local function next_sequence()
  local sequence = last_sequence(call('HGET', META, 'seq')) + 1
  call('HSET', META, 'seq', decimal(sequence))
  return sequence
end
-- luacheck: pop
