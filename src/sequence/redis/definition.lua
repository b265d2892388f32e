-- Returns the definition of a counter, or '' if it has none.
-- luacheck: read globals counter

return counter.definition
