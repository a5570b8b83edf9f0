-- Reads facts: what a change of tasks depends on. ARGV[1] is the prefix of all keys. Each reader returns a flat list of
-- texts; a missing value is false, which compares as the empty text.

local PREFIX = ARGV[1]

local function job(id, rest)
  return PREFIX .. 'job:' .. id .. rest
end

local function append(into, values)
  into[#into + 1] = tostring(#values)
  for _, value in ipairs(values) do
    into[#into + 1] = value
  end
end

-- The keys of a task. The last two are those of the present minute and of the step that holds it.
local function task_values(id, minute)
  return redis.call('MGET', job(id, ':worker'), job(id, ':status'), job(id, ':created_at'), job(id, ':created_by'),
    job(id, ':ran_at'), job(id, ':parent'), PREFIX .. 'cronhold:task:' .. id, job(id, ':lock'), job(id, ':lock:worker'),
    job(id, ':rate:' .. minute))
end

-- The names, defaults and channels of all ports in one direction.
local function port_values(id, direction)
  local head = job(id, ':' .. direction .. 'ports')
  local values = {}
  local names = redis.call('SMEMBERS', head)
  append(values, names)
  append(values, redis.call('HGETALL', head .. ':default'))
  append(values, redis.call('HGETALL', head .. ':channels'))
  return values, names
end

-- For each name the position of the first item, and the number of items.
local function port_sizes(values, names, id, direction)
  for _, name in ipairs(names) do
    local first = redis.call('HGET', PREFIX .. 'cronhold:ports:' .. id, direction .. ':' .. name)
    values[#values + 1] = first or ''
    values[#values + 1] = tostring(redis.call('LLEN', job(id, ':' .. direction .. ':' .. name)))
  end
end

local READ = {}

READ.task = task_values

READ.ports = function(id, direction)
  return (port_values(id, direction))
end

READ.sized_ports = function(id, direction)
  local values, names = port_values(id, direction)
  port_sizes(values, names, id, direction)
  return values
end

READ.hash = function(key)
  return redis.call('HGETALL', PREFIX .. key)
end

READ.field = function(key, field)
  return { redis.call('HGET', PREFIX .. key, field) }
end

READ.set = function(key)
  return redis.call('SMEMBERS', PREFIX .. key)
end

READ.text = function(key)
  return { redis.call('GET', PREFIX .. key) }
end

READ.list = function(key, from, to)
  return redis.call('LRANGE', PREFIX .. key, from, to)
end

READ.length = function(key)
  return { tostring(redis.call('LLEN', PREFIX .. key)) }
end

-- The next place, and members of a set from a place.
READ.some_members = function(key, from, count)
  local found = redis.call('SSCAN', PREFIX .. key, from, 'COUNT', count)
  table.insert(found[2], 1, found[1])
  return found[2]
end

-- Items from an index, until they have more than this many bytes. Large items are read few at a time.
READ.items = function(key, from, limit, bytes)
  local found, size, at, count = {}, 0, tonumber(from), 4
  local last = at + tonumber(limit) - 1
  while at <= last and size <= tonumber(bytes) do
    local page = redis.call('LRANGE', PREFIX .. key, at, math.min(at + count - 1, last))
    if #page == 0 then
      break
    end
    for _, item in ipairs(page) do
      found[#found + 1] = item
      size = size + #item
    end
    at = at + #page
    count = math.max(1, math.min(100, math.floor((tonumber(bytes) - size) * #found / math.max(size, 1))))
  end
  return found
end

-- Members of a sorted set up to a score, the lowest first.
READ.scores = function(key, until_score, limit)
  return redis.call('ZRANGEBYSCORE', PREFIX .. key, '-inf', until_score, 'LIMIT', 0, limit)
end

-- For each task that may listen to a channel, its id and the channels of its in ports.
READ.subscribers = function(channel)
  local values = {}
  for _, id in ipairs(redis.call('SMEMBERS', PREFIX .. 'channel:' .. channel)) do
    values[#values + 1] = id
    append(values, redis.call('HGETALL', job(id, ':inports:channels')))
  end
  return values
end

-- What is stored of a worker process, and its signals.
READ.process = function(id)
  local values = { redis.call('HGET', PREFIX .. 'cronhold:processes', id) or '' }
  for _, signal in ipairs(redis.call('LRANGE', PREFIX .. id .. '-signals', 0, -1)) do
    values[#values + 1] = signal
  end
  return values
end

-- Whether a client is subscribed to anything but the channels of Cronhold itself.
READ.listeners = function()
  if redis.call('PUBSUB', 'NUMPAT') > 0 then
    return { '1' }
  end
  for _, channel in ipairs(redis.call('PUBSUB', 'CHANNELS')) do
    if not string.find(channel, 'cronhold:', 1, true) then
      return { '1' }
    end
  end
  return { '0' }
end
