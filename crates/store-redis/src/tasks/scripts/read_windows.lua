-- Reads the windows of tasks. ARGV[2] is a packed list: minute, items, bytes, children, ids, bytes of all items together.

local request = cmsgpack.unpack(ARGV[2])
local found = {}
for index, id in ipairs(request[5]) do
  found[index] = window(id, request[1], request[2], request[3], request[4], request[6])
end
return found
