-- Lists tasks in the order of their ids. ARGV[2] is a packed list: minute, the id to begin after, status and queue that
-- they must have (empty for any), and the number of tasks. Returns the last id that was looked at, whether there may be
-- more, and for each task its id and values.

local request = cmsgpack.unpack(ARGV[2])
local minute, after, status, queue, limit = request[1], tonumber(request[2]), request[3], request[4], tonumber(request[5])

-- Ids that one call looks at.
local LOOKS_MAX = 20000
-- Ids that are read at once.
local STEP = 500

local found = {}
local last = tonumber(redis.call('GET', PREFIX .. 'jobs:last_id') or '0')

local function look(ids)
  local keys = {}
  for at, id in ipairs(ids) do
    keys[at] = job(id, ':status')
  end
  local statuses = redis.call('MGET', unpack(keys))
  for at, id in ipairs(ids) do
    if statuses[at] and (status == '' or statuses[at] == status) then
      local values = task_values(id, minute)
      local worker = values[1]
      if worker and (queue == '' or cjson.decode(worker).queue == queue) then
        found[#found + 1] = { id, values }
        if #found == limit then
          return id
        end
      end
    end
  end
  return false
end

-- A few tasks among many ids are found by their set.
if redis.call('SCARD', PREFIX .. 'jobs') <= LOOKS_MAX then
  local ids = {}
  for _, id in ipairs(redis.call('SMEMBERS', PREFIX .. 'jobs')) do
    local number = tonumber(id)
    if number and number > after then
      ids[#ids + 1] = number
    end
  end
  table.sort(ids)
  for from = 1, #ids, STEP do
    local part = {}
    for at = from, math.min(from + STEP - 1, #ids) do
      part[#part + 1] = string.format('%d', ids[at])
    end
    if look(part) then
      break
    end
  end
  return { '0', '0', found }
end

local at, looked = after, 0
while at < last and looked < LOOKS_MAX do
  local part = {}
  for id = at + 1, math.min(at + STEP, last) do
    part[#part + 1] = string.format('%d', id)
  end
  local full = look(part)
  if full then
    return { full, '0', found }
  end
  at = math.min(at + STEP, last)
  looked = looked + STEP
end
return { string.format('%d', at), at < last and '1' or '0', found }
