-- Reads facts as one snapshot. ARGV[2] is a packed list of facts: name and arguments. Returns the time, the values of each
-- fact, and for tasks that follow from them (parents, and tasks in the part of a queue that was read) their id, the
-- minute and their values.

local extra, seen = {}, {}

local function add_task(id, minute)
  if seen[id] or #extra >= 3000 then
    return
  end
  seen[id] = true
  local values = task_values(id, minute)
  extra[#extra + 1] = { id, minute, values }
  if values[6] then
    add_task(values[6], minute)
  end
end

local found = {}
for index, fact in ipairs(cmsgpack.unpack(ARGV[2])) do
  local name, a, b, c, d = fact[1], fact[2], fact[3], fact[4], fact[5]
  local values = READ[name](a, b, c, d)
  found[index] = values
  if name == 'task' and values[6] then
    add_task(values[6], b)
  elseif name == 'some_members' then
    for at = 2, #values do
      add_task(values[at], d)
    end
  elseif name == 'list' and d then
    -- A part of a queue: the tasks in it will be looked at.
    for at = #values, 1, -1 do
      local id = string.match(values[at], '"jid":%s*(%d+)%s*[,}]')
      if id then
        add_task(id, d)
      end
    end
  end
end
local now = redis.call('TIME')
return { now[1], now[2], found, extra }
