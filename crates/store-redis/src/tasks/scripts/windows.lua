-- Reads windows: the beginning of everything that a task has.

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

-- The first items of each port that has any, in the order of the names until the budget of the window is used up.
local function add_items(values, names, id, direction, items, bytes, budget)
  local order, found = {}, {}
  for at, name in ipairs(names) do
    order[at] = name
  end
  table.sort(order, is_before)
  for _, name in ipairs(order) do
    found[name] = {}
    if budget.left > 0 then
      local key = 'job:' .. id .. ':' .. direction .. ':' .. name
      found[name] = READ.items(key, 0, items, math.min(tonumber(bytes), budget.left))
      for _, item in ipairs(found[name]) do
        budget.left = budget.left - #item
      end
    end
  end
  for _, name in ipairs(names) do
    append(values, found[name])
  end
end

local function window_ports(id, direction, items, bytes, budget)
  local values, names = port_values(id, direction)
  port_sizes(values, names, id, direction)
  add_items(values, names, id, direction, items, bytes, budget)
  return values
end

-- Returns false if the task does not exist.
local function window(id, minute, items, bytes, children, total)
  local budget = { left = tonumber(total) }
  local values = task_values(id, minute)
  if not values[1] then
    return false
  end
  local inports = window_ports(id, 'in', items, bytes, budget)
  local outports = window_ports(id, 'out', items, bytes, budget)
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
    below[at] = { names[at], child, task_values(child, minute), window_ports(child, 'out', items, bytes, budget) }
  end
  return { values, redis.call('SMEMBERS', job(id, ':aliases')), redis.call('HGETALL', job(id, ':state')),
    inports, outports, below }
end
