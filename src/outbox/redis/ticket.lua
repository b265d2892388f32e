-- The text of a ticket: for drain.lua and repair.lua.

-- A text that is not `length:key, body` becomes the body. A claim will park the event, since its
-- entry cannot be read.
local function parse_ticket(text)
  local length, rest = string.match(text, '^(%d+):(.*)$')
  length = tonumber(length)
  if not length or length > #rest then return '', text end
  return string.sub(rest, 1, length), string.sub(rest, length + 1)
end
