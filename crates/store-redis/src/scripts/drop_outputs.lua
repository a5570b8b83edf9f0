-- Deletes outputs, both their bytes and their lines. Another thread of the server frees them: an output may be long.
-- KEYS: the index of outputs, and the hash of their lines. ARGV: namespace, then runs.
for index = 2, #ARGV do
  local run = ARGV[index]
  redis.call('UNLINK', ARGV[1] .. ':cronhold:output:' .. run, ARGV[1] .. ':rundata:output:' .. run)
  redis.call('ZREM', KEYS[1], run)
  redis.call('HDEL', KEYS[2], run)
end
return #ARGV - 1
