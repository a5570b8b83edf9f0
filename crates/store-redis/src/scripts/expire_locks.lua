-- Deletes fences of locks that are free and were last taken before a time, some at a time. Needs prelude.lua before it.
--
-- ARGV: namespace, cursor, the time in milliseconds. Returns the cursor of the next call, '0' at the end, and the reason of
-- a sealed store instead. A fence is not lower than the milliseconds at which it was given.

local cursor, before = ARGV[2], tonumber(ARGV[3])
local sealed = read('HGET', META, 'sealed')
if sealed then return { sealed } end
-- Fences that one call checks.
local STEP = 500

local found = read('HSCAN', FENCES, cursor, 'COUNT', STEP)
local expired = {}
for at = 1, #found[2], 2 do
  local name, fence = found[2][at], tonumber(found[2][at + 1])
  if fence and fence < before and not read_token(name) then expired[#expired + 1] = name end
end
send('HDEL', FENCES, expired)
return found[1]
