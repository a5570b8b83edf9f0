-- Reads windows: the beginning of everything that a task has.

-- The first items of each port that has any.
local function add_items(values, names, id, direction, items, bytes)
  for _, name in ipairs(names) do
    local key = 'job:' .. id .. ':' .. direction .. ':' .. name
    append(values, READ.items(key, 0, items, bytes))
  end
end

local function window_ports(id, direction, items, bytes)
  local values, names = port_values(id, direction)
  port_sizes(values, names, id, direction)
  add_items(values, names, id, direction, items, bytes)
  return values
end

-- Compares bytes. The comparison of Lua depends on the locale of the server.
local function is_before(a, b)
  local shorter = math.min(#a, #b)
  for at = 1, shorter do
    local x, y = string.byte(a, at), string.byte(b, at)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

-- Returns false if the task does not exist.
local function window(id, minute, items, bytes, children)
  local values = task_values(id, minute)
  if not values[1] then
    return false
  end
  local raw = redis.call('HGETALL', job(id, ':children'))
  local names, ids = {}, {}
  for at = 1, #raw, 2 do
    names[#names + 1] = raw[at]
    ids[raw[at]] = raw[at + 1]
  end
  if #names > tonumber(children) then
    table.sort(names, is_before)
  end
  local below = {}
  for at = 1, math.min(#names, tonumber(children)) do
    local child = ids[names[at]]
    below[at] = { names[at], child, task_values(child, minute), window_ports(child, 'out', items, bytes) }
  end
  return { values, redis.call('SMEMBERS', job(id, ':aliases')), redis.call('HGETALL', job(id, ':state')),
    window_ports(id, 'in', items, bytes), window_ports(id, 'out', items, bytes), below }
end
