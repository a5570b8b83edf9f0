-- Reads a port with items from a position. ARGV[2] is a packed list: id, direction, port, position, items, bytes. Returns
-- the values of all ports with their sizes, the position of the first item that is returned, and the items.

local request = cmsgpack.unpack(ARGV[2])
local id, direction, name = request[1], request[2], request[3]
local values, names = port_values(id, direction)
port_sizes(values, names, id, direction)
local first = tonumber(redis.call('HGET', PREFIX .. 'cronhold:ports:' .. id, direction .. ':' .. name) or '0')
local key = 'job:' .. id .. ':' .. direction .. ':' .. name
local size = redis.call('LLEN', PREFIX .. key)
local from = math.min(math.max(tonumber(request[4]) - first, 0), size)
return { values, tostring(from), READ.items(key, from, request[5], request[6]) }
