-- Does units, each as a whole or not at all. Everything that they speak of is read first; units are decided one after
-- the other on what was read and on what those before them have changed; what has become of it all is written at the
-- end, so that a commit of many units costs a few commands. Needs prelude, records, lines, projection and
-- foreign before it.
--
-- ARGV: namespace, settings of the projection, epoch and seq that the client knows, the client's handle, random text,
-- whether Cronken's nodes share the namespace (`1`), then a unit each, as MessagePack:
--   { version, compare, changes, take, free, hints }
--   compare  kind, field, version or '' for each
--   changes  place in compare, body or '' for each, and what the projection is told of it
--   take     name, holder, time to live in milliseconds or 0 for each
--   free     name, holder for each
-- Answers: { seq, writes to shared keys that failed, an answer for each unit }. That is 0 for one that was done, the
-- place in compare that was in its way, { place in take, token } or { fences }.

local settings, epoch, known, handle, random = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local has_peers = ARGV[7] == '1'
local FIRST_UNIT = 8
-- A lock that Cronken's nodes want as well is not free before its occurrence is so old for all of them.
local FREE_AFTER_MILLIS = 2000
-- Nobody asks for the fences of these, and there is a new one for each event.
local PASSING = '#cronhold/event/'

local refused, stored_seq, by = standing(epoch, known)
if refused then return refused end

local seq = stored_seq + 1
local stamp = ' ' .. string.format('%016x', seq) .. ' '
local time = redis.call('TIME')
local now_millis = time[1] * 1000 + math.floor(time[2] / 1000)
local batch = records()
local units = {}
-- By name: the token that is stored, the fence of the latest holder, whether the lock has changed, how long it lives,
-- and who has freed it.
local tokens, fences, changed_locks, lives, freed_by = {}, {}, {}, {}, {}

local function read_all()
  local fields, names = { [FOREIGN] = {} }, {}
  for kind in pairs(batch.found) do fields[kind] = {} end
  local function name_lock(name)
    if tokens[name] == nil then
      tokens[name] = false
      names[#names + 1] = name
    end
  end
  for index = FIRST_UNIT, #ARGV do
    local unit = cmsgpack.unpack(ARGV[index])
    units[#units + 1] = unit
    local compare = unit[2]
    for at = 1, #compare, 3 do
      local kind, field = compare[at], compare[at + 1]
      if batch.found[kind][field] == nil then
        batch.found[kind][field] = false
        fields[kind][#fields[kind] + 1] = field
      end
    end
    for at = 1, #unit[4], 3 do name_lock(unit[4][at]) end
    for at = 1, #unit[5], 2 do name_lock(unit[5][at]) end
  end
  for kind in pairs(TABLES) do read_fields(TABLES[kind], fields[kind], batch.found[kind]) end
  for _, job in ipairs(fields[FOREIGN]) do batch.found[FOREIGN][job] = foreign_version(ns, job) end
  for _, name in ipairs(names) do tokens[name] = read_token(name) end
  read_fields(FENCES, names, fences)
end

-- What stands in the way of a unit.
local function obstacle(unit)
  local compare, take, free = unit[2], unit[4], unit[5]
  for at = 1, #compare, 3 do
    local value = batch.get(compare[at], compare[at + 1])
    if (value and version_of(value) or '') ~= compare[at + 2] then return (at + 2) / 3 end
  end
  for at = 1, #take, 3 do
    local token = tokens[take[at]]
    local holder = token and holder_of(token)
    local is_free = not token or holder == take[at + 1]
    for place = 1, #free, 2 do
      is_free = is_free or (free[place] == take[at] and free[place + 1] == holder)
    end
    if not is_free then return { (at + 2) / 3, token } end
  end
end

local function free_lock(name, holder)
  if tokens[name] and holder_of(tokens[name]) == holder then
    tokens[name], changed_locks[name], freed_by[name] = false, true, holder
  end
end

-- A run that holds a lock already keeps its fence.
local function take_lock(name, holder, life, version)
  local own_fence = tokens[name] and tonumber(string.match(tokens[name], '^%x+:(%d+):'))
  local fence = own_fence or math.max(now_millis, tonumber(fences[name] or '0') + 1)
  local shown = string.format('%.0f', fence)
  fences[name], lives[name], changed_locks[name] = shown, life, true
  tokens[name] = table.concat({ holder, shown, version, life, random }, ':')
  return fence
end

-- What the projection hears when everything is decided: by run, or by job.
local shown_runs, shown_pauses = {}, {}

local function apply(unit)
  local version, compare, changes, take, free = unit[1], unit[2], unit[3], unit[4], unit[5]
  for at = 1, #changes, 3 do
    local place = 3 * changes[at]
    local kind, field, body = compare[place - 2], compare[place - 1], changes[at + 1]
    batch.put(kind, field, body ~= '' and version .. stamp .. body)
    if kind == RUN then
      shown_runs[field] = changes[at + 2]
    elseif kind == JOB_STATE then
      shown_pauses[field] = changes[at + 2]
    end
  end
  for at = 1, #free, 2 do free_lock(free[at], free[at + 1]) end
  if #take == 0 then return 0 end
  local answer = {}
  for at = 1, #take, 3 do answer[#answer + 1] = take_lock(take[at], take[at + 1], take[at + 2], version) end
  return { answer }
end

-- How long a lock stays after it was freed. The id of a run begins with the milliseconds of its nominal time.
local function afterlife(name)
  if not has_peers or not freed_by[name] then return 0 end
  return tonumber(sub(freed_by[name], 1, 12), 16) + FREE_AFTER_MILLIS - now_millis
end

local function write_locks()
  local kept = {}
  for name in pairs(changed_locks) do
    local key, token, rest = lock_key(name), tokens[name], afterlife(name)
    if not token and rest > 0 then
      redis.call('SET', key, FREED .. freed_by[name], 'PX', rest)
    elseif not token then
      redis.call('DEL', key)
    elseif lives[name] == 0 then
      redis.call('SET', key, token)
    else
      redis.call('SET', key, token, 'PX', lives[name])
    end
    if token and sub(name, 1, #PASSING) ~= PASSING then
      kept[#kept + 1] = name
      kept[#kept + 1] = fences[name]
    end
  end
  send('HSET', FENCES, kept)
end

local function write_projection()
  local show = projection(ns, settings, time)
  for id, argument in pairs(shown_runs) do
    local old, new = batch.found[RUN][id], batch.now[RUN][id]
    local owner = old and (owner_of(old) == NO_OWNER and '-' or owner_of(old)) or nil
    if new then
      show.run(id, old and class_of(old) or nil, owner, argument)
    elseif old then
      show.gone(id, class_of(old), job_of(old))
    end
  end
  for job, argument in pairs(shown_pauses) do show.pause(job, argument == '1') end
  return show.finish()
end

read_all()
local answer, hints, has_changes = { seq, 0 }, { handle }, false
for _, unit in ipairs(units) do
  local result = obstacle(unit)
  if not result then
    result = apply(unit)
    has_changes = has_changes or #unit[3] > 0 or #unit[4] > 0 or #unit[5] > 0
    hints[#hints + 1] = unit[6]
  end
  answer[#answer + 1] = result
end
if not has_changes then
  answer[1] = stored_seq
  return answer
end
batch.check()
-- The first write is one that a server without memory refuses; after it, a script may go on.
local reached = string.format('%.0f', seq)
redis.call('HSET', META, 'seq', reached, by or 'seq', reached)
batch.finish()
write_locks()
answer[2] = write_projection()
redis.call('PUBLISH', HINTS, table.concat(hints))
return answer
