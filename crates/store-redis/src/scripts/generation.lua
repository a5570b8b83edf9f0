-- What goes on when stores are lost: numbers that rise with time all the same, and a time in which nobody commits. Needs
-- prelude.lua before it.

-- Time is counted from the year 2026 on.
local FIRST_SECOND = 1767225600

-- Microseconds: more than there were commits, in this store and in whatever was here before it. A store that begins anew
-- counts on from there, so that of two records the later one has the higher seq, whichever store they were written to.
local function seq_of_now()
  local time = redis.call('TIME')
  return (time[1] - FIRST_SECOND) * 1000000 + time[2]
end

-- Nothing is committed for so long at least.
local function prolong_healing(millis)
  if redis.call('PTTL', HEALING) < millis then redis.call('SET', HEALING, '1', 'PX', millis) end
end
