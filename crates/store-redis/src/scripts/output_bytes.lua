-- Returns the size of all outputs. The scripts that append and delete count it; a server that an earlier version has used
-- does not have it yet. KEYS: the size, and the index of outputs. ARGV: namespace.
local bytes = redis.call('GET', KEYS[1])
if bytes then return tonumber(bytes) end
local total = 0
for _, run in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  total = total + redis.call('STRLEN', ARGV[1] .. ':cronhold:output:' .. run)
end
redis.call('SET', KEYS[1], total)
return total
