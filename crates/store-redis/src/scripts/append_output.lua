-- Appends to the output of a run. Needs texts.lua, lines.lua and projection.lua (for the settings) before it. KEYS: the
-- output. ARGV: namespace, settings, run, from, bytes, and how many lines are shown at most. Returns the length of the
-- output, 1 if the bytes were appended or 0 if there is a gap, and the number of writes that were skipped because a key
-- has the wrong type. A sealed store returns its reason instead.
local ns, run, bytes = ARGV[1], ARGV[3], ARGV[5]
local settings, from, most = read_settings(ARGV[2]), tonumber(ARGV[4]), tonumber(ARGV[6])
local output = KEYS[1]
local sealed = redis.call('HGET', ns .. ':cronhold:meta', 'sealed')
if sealed then return { sealed } end
local length = redis.call('STRLEN', output)
if from > length then
  return { length, 0, 0 }
end
local new = string.sub(bytes, length - from + 1)
if new == '' then
  return { length, 1, 0 }
end
-- The size of all outputs. With the first output it is known to be 0; a server that an earlier version has used gets it
-- when it is first requested.
local counted = ns .. ':cronhold:output_bytes'
if length == 0 and redis.call('ZADD', ns .. ':cronhold:outputs', 0, run) == 1
  and redis.call('ZCARD', ns .. ':cronhold:outputs') == 1 then
  redis.call('SET', counted, 0)
end
if redis.call('EXISTS', counted) == 1 then redis.call('INCRBY', counted, #new) end
local time = redis.call('TIME')
local now = time[1] * 1e6 + time[2]
local total = redis.call('APPEND', output, new)
-- Runs that have not ended are listed as such. What comes after the end is shown at once, also when its last line is
-- unfinished.
local is_open = redis.call('ZSCORE', ns .. ':cronhold:index:runs', '0' .. run)
local is_shown = pcall(show_output, ns, settings, run, total, not is_open, now, math.min(most, LINES_A_CALL))
return { total, 1, is_shown and 0 or 1 }
