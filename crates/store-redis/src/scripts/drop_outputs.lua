-- Deletes outputs, both their bytes and their lines. Another thread of the server frees them: an output may be long.
-- KEYS: the index of outputs, the hash of their lines, and the size of all outputs. ARGV: namespace, then runs.
-- Returns the reason of a sealed store.
local sealed = redis.call('HGET', ARGV[1] .. ':cronhold:meta', 'sealed')
if sealed then return sealed end
local bytes = 0
for index = 2, #ARGV do
  local run = ARGV[index]
  local output = ARGV[1] .. ':cronhold:output:' .. run
  bytes = bytes + redis.call('STRLEN', output)
  redis.call('UNLINK', output, ARGV[1] .. ':rundata:output:' .. run)
  redis.call('ZREM', KEYS[1], run)
  redis.call('HDEL', KEYS[2], run)
end
if bytes > 0 and redis.call('EXISTS', KEYS[3]) == 1 then redis.call('DECRBY', KEYS[3], bytes) end
return #ARGV - 1
