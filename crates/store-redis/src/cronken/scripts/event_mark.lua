-- Publishes a mark between events, see event_sequencer.rs. KEYS: the counter of marks. ARGV: the channel of marks.
-- Returns the mark: its number, and the server's time in microseconds.
local time = redis.call('TIME')
local mark = string.format('%.0f %.0f', redis.call('INCR', KEYS[1]), time[1] * 1e6 + time[2])
redis.call('PUBLISH', ARGV[1], mark)
return mark
