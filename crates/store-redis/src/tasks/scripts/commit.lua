-- Carries out a change if everything that it depends on is as it was read, and nothing otherwise. ARGV[2] is a packed list:
-- facts with their values, checks, commands, and the windows that are read afterwards. Returns the time, the indexes
-- of facts and checks that failed (from 1), and the windows.

local request = cmsgpack.unpack(ARGV[2])
local facts, checks, commands, windows = request[1], request[2], request[3], request[4]

local function is_same(found, expected)
  if #found ~= #expected then
    return false
  end
  for at = 1, #expected do
    if (found[at] or '') ~= expected[at] then
      return false
    end
  end
  return true
end

local CHECK = {}

-- The first item of a port has this position, and there are at least, or exactly, this many items.
CHECK.items = function(id, direction, name, first, count, exactly)
  local stored = redis.call('HGET', PREFIX .. 'cronhold:ports:' .. id, direction .. ':' .. name) or ''
  local length = redis.call('LLEN', job(id, ':' .. direction .. ':' .. name))
  return stored == first and (length == tonumber(count) or (exactly == '0' and length > tonumber(count)))
end

-- A list has this element among its last ones.
CHECK.entry = function(key, text)
  return redis.call('LPOS', PREFIX .. key, text, 'RANK', -1, 'MAXLEN', 65536) ~= false
end

-- A sorted set has this member.
CHECK.member = function(key, member)
  return redis.call('ZSCORE', PREFIX .. key, member) ~= false
end

local now = redis.call('TIME')
local stale_facts, stale_checks = {}, {}
for index, fact in ipairs(facts) do
  if not is_same(READ[fact[1]](unpack(fact[2])), fact[3]) then
    stale_facts[#stale_facts + 1] = index
  end
end
for index, check in ipairs(checks) do
  if not CHECK[check[1]](unpack(check, 2)) then
    stale_checks[#stale_checks + 1] = index
  end
end
if #stale_facts > 0 or #stale_checks > 0 then
  return { now[1], now[2], stale_facts, stale_checks, {} }
end

for _, command in ipairs(commands) do
  redis.call(unpack(command))
end

local found = {}
for index, wanted in ipairs(windows) do
  local part = {}
  for at, id in ipairs(wanted[5]) do
    part[at] = window(id, wanted[1], wanted[2], wanted[3], wanted[4], wanted[6])
  end
  found[index] = part
end
return { now[1], now[2], stale_facts, stale_checks, found }
