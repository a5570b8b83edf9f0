-- Shows a node and its runs to Cronken's clients, and removes what dead nodes of Cronken have left behind. Needs
-- texts.lua, lines.lua and projection.lua before it. KEYS: the set of instances. ARGV: namespace, settings, the node's
-- id, its instance as JSON, a random token. Returns the number of foreign runs that were frozen, and the number of
-- writes that were skipped because a key has the wrong type.
local ns, settings, node, instance, token = ARGV[1], read_settings(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local time = redis.call('TIME')
local now = time[1] * 1e6 + time[2]

-- Heartbeats that one call checks; the next call continues with the rest.
local STALE_A_STEP = 500
-- The lock is released at the end of this script; it expires only if Redis stops in between.
local REAPER_TTL_MS = 10000

local call, failed = counted_calls()

local function beat()
  local values = {}
  for _, run in ipairs(redis.call('SMEMBERS', ns .. ':cronhold:node:' .. node)) do
    values[#values + 1] = seconds(now)
    values[#values + 1] = run
  end
  call_in_parts(call, values, 'ZADD', ns .. ':rundata:active')
  call('ZADD', KEYS[1], seconds(now), instance)
end

-- The last lines of a foreign run, from a list or a sorted set.
local function foreign_lines(run)
  if settings.lines == 0 then
    return ''
  end
  local key = ns .. ':rundata:output:' .. run
  local form = redis.call('TYPE', key).ok
  if form == 'list' then
    return clean(table.concat(redis.call('LRANGE', key, -settings.lines, -1)))
  elseif form == 'zset' then
    local lines = redis.call('ZRANGE', key, -settings.lines, -1)
    lines[#lines + 1] = ''
    return clean(table.concat(lines, '\n'))
  end
  return ''
end

-- Freezes a foreign run whose node sent no heartbeat for too long.
local function freeze(run)
  call('ZREM', ns .. ':rundata:active', run)
  local text = call('HGET', ns .. ':rundata', run)
  local is_read, metadata = pcall(cjson.decode, text or '')
  if not is_read or type(metadata) ~= 'table' or type(metadata.job_name) ~= 'string' then
    return 0
  end
  metadata.status, metadata.retcode = 'frozen', cjson.null
  metadata.output = foreign_lines(run)
  metadata.duration = math.max(0, now - (micros_of(tostring(metadata.start_time)) or now)) / 1e6
  call('HSET', ns .. ':rundata', run, cjson.encode(metadata))
  local general, own = ns .. ':results:fail', ns .. ':results:' .. metadata.job_name .. ':fail'
  call('ZADD', general, seconds(now), run)
  call('ZADD', own, seconds(now), run)
  trim_results(call, ns, settings, { [own] = general })
  return 1
end

-- A foreign run with an old heartbeat is frozen only if it sends none while it is watched for as long again: otherwise
-- a jump of the server's clock would freeze everything. Our own runs are left to our nodes.
local function reap()
  local watched, still, frozen = ns .. ':cronhold:watched', {}, 0
  local stale = call('ZRANGEBYSCORE', ns .. ':rundata:active', '-inf', seconds(now - settings.stale_micros),
    'WITHSCORES', 'LIMIT', 0, STALE_A_STEP) or {}
  for index = 1, #stale, 2 do
    local run, score = stale[index], stale[index + 1]
    if redis.call('HEXISTS', ns .. ':cronhold:runs', run) == 0 then
      local seen = redis.call('HGET', watched, run)
      local since = seen and string.match(seen, '^(%d+) ')
      if not since or seen ~= since .. ' ' .. score then
        since = string.format('%.0f', now)
      end
      if now - tonumber(since) >= settings.stale_micros then
        frozen = frozen + freeze(run)
      else
        still[#still + 1] = run
        still[#still + 1] = since .. ' ' .. score
      end
    end
  end
  redis.call('DEL', watched)
  call_in_parts(call, still, 'HSET', watched)
  call('ZREMRANGEBYSCORE', KEYS[1], '-inf', seconds(now - settings.stale_micros))
  return frozen
end

beat()
local lock, frozen = ns .. ':locks:__reaper__', 0
if redis.call('SET', lock, token, 'NX', 'PX', REAPER_TTL_MS) then
  frozen = reap()
  redis.call('DEL', lock)
end
return { frozen, failed() }
