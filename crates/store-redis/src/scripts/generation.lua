-- What must survive the loss of all data: seqs that rise with time. Needs prelude.lua before it.

-- Microseconds since then: higher than the number of commits in this store and in any store before it. An empty store
-- starts here, so that of two records the later one has the higher seq, also if they were written to different stores.
local function seq_of_now()
  local time = redis.call('TIME')
  return (time[1] - FIRST_SECOND) * 1000000 + time[2]
end
