-- Commits units, each as a whole or not at all. The script reads everything that the units refer to, decides them one
-- after the other on what was read and on what earlier units have changed, and writes the result at the end, so that a
-- commit of many units costs a few commands. Needs prelude, records, texts, lines, projection and foreign before it.
--
-- ARGV: namespace, settings of the projection, position and seq of the client, the notification if all units are
-- committed (the client's handle, then hints, then the predicted seq), the length of each unit's hints (8 hex digits each),
-- a random text, the seq that the client predicts for this commit (16 hex digits, or empty), a channel that only the
-- client subscribes to (empty: notify in any case), the number of compared fields of each kind and whether the states have the fields of the jobs (as MessagePack), these fields kind by kind in
-- the order of the units, then the units. The global pause, a single record, occurs once among the fields; names of locks
-- that are taken or released are fields as well. A unit is one argument for its layout, one for its versions, then the
-- texts that the layout refers to by index. The versions are that of the unit, then the one that it expects of each
-- compared record (dashes: must not exist). Many units have the same layout, which is parsed once:
--   { texts, compares, changes, takes, frees, index of the first lock, then
--     kind of each compare,
--     index among the compares, kind, index of body (0: delete), then for the projection: how it is shown, index of its
--     texts, source of its output; for each change }
-- If a seq is predicted, bodies already have version and seq before them. Locks follow one another: name, holder, time to
-- live in milliseconds or 0 for each that is taken; name, holder for each that is released. Returns { seq, skipped writes
-- to shared keys, a result for each unit }. A result is 0 for a committed unit, the index of the compare that failed,
-- { index of the take that failed, token }, or { fences }. A sealed store returns { 'sealed', reason } instead.
--
-- This script dominates the load of the server, and Redis has one thread for all nodes. Every text that a script builds
-- costs by its length, and every step of Lua and every command costs too: hence so few of them.

local settings, epoch, known, random = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[7]
local hints, hint_lengths = ARGV[5], ARGV[6]
local predicted, own_channel = ARGV[8], ARGV[9]
local FIELD_COUNTS, FIRST_FIELD = 10, 11
-- Hex digits of the handle, and of each length.
local HANDLE, LENGTH = 16, 8
-- The position of the first compare in a layout, and the number of values for each change.
local FIRST_COMPARE, CHANGE = 7, 6
-- Stands for the version of a record that must not exist.
local ABSENT = '----------------'
-- A lock that Cronken's nodes compete for stays taken until its occurrence is this old for all of them.
local FREE_AFTER_MILLIS = 2000
-- The version that a unit expects of a record whose stored text has no valid one.
local NO_VERSION = 'ffffffffffffffff'
-- Fences of these locks are never read, and each event and each request creates a new lock.
local MARKS = { ['#cronhold/event/'] = true, ['#cronhold/reques'] = true }
local MARK_LENGTH = 16

local refused, stored_seq, by, has_peers, sealed = check_position(epoch, known)
if refused then return refused end
if sealed then return { 'sealed', sealed } end

local seq = stored_seq + 1
local seq_digits = string.format('%016x', seq)
local stamp = ' ' .. seq_digits .. ' '
-- Where bodies begin if version and seq are before them.
local BODY = predicted ~= '' and 35
local time = redis.call('TIME')
local now_millis = time[1] * 1000 + math.floor(time[2] / 1000)
local batch = records()
local found, now = batch.found, batch.now
local args = ARGV
-- By kind: the argument with the field of the next compare.
local next_fields = {}
-- By kind, by field: the current version of a record, '' if it does not exist.
local versions = {}
-- By name: the stored token, the fence of the latest holder, whether the lock has changed, its time to live, and the
-- holder that has released it.
local tokens, fences, changed_locks, lives, freed_by = {}, {}, {}, {}, {}

-- Reads what the units refer to. Returns the index of the first unit.
local function read_all()
  local counts, from = cmsgpack.unpack(args[FIELD_COUNTS]), FIRST_FIELD
  local has_fields_of_jobs = counts[LAST_KIND + 2] == 1
  for kind = PAUSE, LAST_KIND do
    if kind == JOB_STATE and has_fields_of_jobs then from = next_fields[JOB] end
    local till = from + counts[kind + 1] - 1
    next_fields[kind], versions[kind] = from, {}
    if kind == FOREIGN then
      for at = from, till do found[kind][args[at]] = foreign_version(ns, args[at]) end
    elseif kind == LOCK then
      for at = from, till do tokens[args[at]] = read_token(args[at]) end
      read_fields(FENCES, args, fences, from, till)
    else
      read_fields(TABLES[kind], args, found[kind], from, till)
    end
    from = till + 1
  end
  return from
end

-- Parses a layout.
local function read_layout(text)
  local layout = cmsgpack.unpack(text)
  layout.size = layout[1] + 1
  layout.last_compare = FIRST_COMPARE + layout[2] - 1
  layout.last_change = layout.last_compare + CHANGE * layout[3]
  layout.has_locks = layout[4] + layout[5] > 0
  layout.has_changes = layout.has_locks or layout[3] > 0
  return layout
end

-- The first lock of a unit that another run holds.
local function held_lock(layout, start)
  local first = start + layout[6]
  local frees = first + 3 * layout[4]
  for at = first, frees - 1, 3 do
    local name = args[at]
    local token = tokens[name]
    local holder = token and holder_of(token)
    local is_free = not token or holder == args[at + 1]
    for place = frees, frees + 2 * layout[5] - 1, 2 do
      is_free = is_free or (args[place] == name and args[place + 1] == holder)
    end
    if not is_free then return { (at - first) / 3 + 1, token } end
  end
end

local function free_lock(name, holder)
  if tokens[name] and holder_of(tokens[name]) == holder then
    tokens[name], changed_locks[name], freed_by[name] = false, true, holder
  end
end

-- A run that already holds the lock keeps its fence.
local function take_lock(name, holder, life, version)
  local own_fence = tokens[name] and tonumber(string.match(tokens[name], '^%x+:(%d+):'))
  local fence = own_fence or math.max(now_millis, tonumber(fences[name] or '0') + 1)
  local shown = string.format('%.0f', fence)
  fences[name], lives[name], changed_locks[name] = shown, life, true
  tokens[name] = table.concat({ holder, shown, version, life, random }, ':')
  return fence
end

-- Input of the projection. By run: the layout of the unit that wrote it last, the index of the unit, and the position
-- in the layout. By job: `1` if it is paused, and whether it exists. Whether everything is paused, if that is written.
local shown_layouts, shown_starts, shown_places, shown_pauses, shown_jobs, shown_all = {}, {}, {}, {}, {}, nil

local function apply_locks(layout, start)
  local first, version = start + layout[6], sub(args[start + 1], 1, 16)
  local frees = first + 3 * layout[4]
  for at = frees, frees + 2 * layout[5] - 1, 2 do free_lock(args[at], args[at + 1]) end
  if layout[4] == 0 then return 0 end
  local answer = {}
  for at = first, frees - 1, 3 do answer[#answer + 1] = take_lock(args[at], args[at + 1], args[at + 2], version) end
  return { answer }
end

-- Whether a stored record begins with something that is not a version, so that it can only be replaced or deleted.
local function has_no_version(version)
  return version ~= '' and (#version < 16 or find(version, '[^0-9a-f]') ~= nil)
end

-- Decides all units in order. Returns their number, which are refused, and whether anything changes. Frequently used
-- values are local here, because access to an upvalue is an extra step.
local function decide(start, answer)
  local args, found, now, versions, next_fields, sub, PAUSE, RUN = args, found, now, versions, next_fields, sub, PAUSE, RUN
  local is_complete = predicted == seq_digits
  local layouts, compared, is_refused, unit, has_changes, last = {}, {}, {}, 0, false, #args
  while start <= last do
    local layout = layouts[args[start]]
    if not layout then
      layout = read_layout(args[start])
      layouts[args[start]] = layout
    end
    unit = unit + 1
    local expected, result, place = args[start + 1], 0, 0
    local version = sub(expected, 1, 16)
    for at = FIRST_COMPARE, layout.last_compare do
      local kind = layout[at]
      local next_field, of_kind = next_fields[kind], versions[kind]
      local field = args[next_field]
      place = place + 1
      compared[place] = field
      if kind ~= PAUSE then next_fields[kind] = next_field + 1 end
      local is = of_kind[field]
      if not is then
        local value = found[kind][field]
        is = value and sub(value, 1, 16) or ''
        of_kind[field] = is
      end
      local wanted = sub(expected, 16 * place + 1, 16 * place + 16)
      if wanted == ABSENT then wanted = '' end
      if is ~= wanted and result == 0 and not (wanted == NO_VERSION and has_no_version(is)) then result = place end
    end
    if layout.has_locks and result == 0 then result = held_lock(layout, start) or 0 end
    if result ~= 0 then
      is_refused[unit] = true
    else
      local head = version .. stamp
      for at = layout.last_compare + 1, layout.last_change, CHANGE do
        local field, kind, body = compared[layout[at]], layout[at + 1], layout[at + 2]
        if body == 0 then
          now[kind][field], versions[kind][field] = false, ''
        else
          local value = args[start + body]
          if not is_complete then value = head .. (BODY and sub(value, BODY) or value) end
          now[kind][field], versions[kind][field] = value, version
        end
        if kind == RUN then
          shown_layouts[field], shown_starts[field], shown_places[field] = layout, start, at + 3
        elseif kind == JOB_STATE then
          shown_pauses[field] = layout[at + 3]
        elseif kind == JOB then
          shown_jobs[field] = body ~= 0
        elseif kind == PAUSE then
          shown_all = layout[at + 3] == '1'
        end
      end
      has_changes = has_changes or layout.has_changes
      if layout.has_locks then result = apply_locks(layout, start) end
    end
    answer[unit + 2] = result
    start = start + layout.size
  end
  return unit, is_refused, has_changes
end

-- How long a released lock stays. The id of a run begins with the milliseconds of its nominal time.
local function afterlife(name)
  if not has_peers or not freed_by[name] then return 0 end
  local rest = tonumber(sub(freed_by[name], 1, 12), 16) + FREE_AFTER_MILLIS - now_millis
  -- A run that was started before its nominal time must not keep the lock longer.
  return math.min(rest, FREE_AFTER_MILLIS)
end

local function write_locks()
  local kept = {}
  for name in pairs(changed_locks) do
    local key, token, rest = lock_key(name), tokens[name], afterlife(name)
    if not token and rest > 0 then
      redis.call('SET', key, FREED .. freed_by[name], 'PX', rest)
    elseif not token then
      redis.call('DEL', key)
    elseif lives[name] == '0' then
      redis.call('SET', key, token)
    else
      redis.call('SET', key, token, 'PX', lives[name])
    end
    if token and not MARKS[sub(name, 1, MARK_LENGTH)] then
      kept[#kept + 1] = name
      kept[#kept + 1] = fences[name]
    end
  end
  send('HSET', FENCES, kept)
end

local function write_projection()
  local show = projection(ns, settings, time)
  local found, now, jobs, old_jobs = found[RUN], now[RUN], batch.jobs, batch.old_jobs
  for id, layout in pairs(shown_layouts) do
    local old, job = found[id], jobs[id]
    local class = old and class_of(old)
    if now[id] then
      local place = shown_places[id]
      local texts = shown_starts[id] + layout[place + 1]
      local is_owned = class == OPEN and owner_of(old) ~= NO_OWNER
      show.run(id, job, class, is_owned, layout[place], layout[place + 2], args[texts], args[texts + 1], old_jobs[id])
    elseif old then
      show.gone(id, class, job)
    end
  end
  for job, is_paused in pairs(shown_pauses) do show.pause(job, is_paused == '1') end
  for job, is_there in pairs(shown_jobs) do show.job(job, is_there) end
  if shown_all ~= nil then show.pause_all(shown_all) end
  return show.finish()
end

-- Whether any other process is subscribed. The client subscribes to both channels at once or to none.
local function has_listeners()
  if own_channel == '' then return true end
  local found = redis.pcall('PUBSUB', 'NUMSUB', HINTS, own_channel)
  return found.err or found[2] > found[4]
end

-- Notifies other handles of the committed units. The message ends with the seq, so that a receiver knows whether it has
-- written a record since. A text costs time in proportion to its length, so usually the client has built the message.
local function notify(units, is_refused)
  if not has_listeners() then return end
  if next(is_refused) then
    local parts, at = { sub(hints, 1, HANDLE) }, HANDLE
    for unit = 1, units do
      local length = tonumber(sub(hint_lengths, LENGTH * (unit - 1) + 1, LENGTH * unit), 16)
      if not is_refused[unit] then parts[#parts + 1] = sub(hints, at + 1, at + length) end
      at = at + length
    end
    parts[#parts + 1] = seq_digits
    hints = table.concat(parts)
  elseif predicted ~= seq_digits then
    hints = sub(hints, 1, #hints - #predicted) .. seq_digits
  end
  -- The units are committed, even if the notification fails.
  redis.pcall('PUBLISH', HINTS, hints)
end

local answer = { seq, 0 }
local units, is_refused, has_changes = decide(read_all(), answer)
if not has_changes then
  answer[1] = stored_seq
  return answer
end
batch.check()
-- A server that is out of memory rejects the first write; after it, the script may continue.
local reached = string.format('%.0f', seq)
redis.call('HSET', META, 'seq', reached, by or 'seq', reached)
batch.finish()
write_locks()
-- The units are written. From here on the script must not fail.
local is_shown, failures = pcall(write_projection)
answer[2] = is_shown and failures or 1
notify(units, is_refused)
return answer
