-- Does units, each as a whole or not at all. Everything that they speak of is read first; units are decided one after
-- the other on what was read and on what those before them have changed; what has become of it all is written at the
-- end, so that a commit of many units costs a few commands. Needs prelude, records, lines, projection and
-- foreign before it.
--
-- ARGV: namespace, settings of the projection, epoch and seq that the client knows, what others are told when all units
-- are done (the client's handle, then hints), how long the hints of each unit are (8 hex digits each), random text, the
-- seq that the client foresees for this commit (16 hex digits, or nothing), how many fields of each kind are compared (as MessagePack), these fields kind by kind in the order of the
-- units, then the units. The one record that has no name is there once; the names of locks that are taken or freed are
-- there like fields. A unit is one argument for its form and then the texts that the form gives places to. Many units
-- have the same form, which is taken apart once:
--   { texts, compares, changes, takes, frees, place of the first lock, then
--     kind, place of version (0: there is none) for each compare,
--     place among the compares, kind, place of body (0: it is deleted), then what the projection is told: how it is
--     shown, place of its texts, where its output is; for each change }
-- Place 1 is the version. When a seq is foreseen, bodies have version and seq before them already. Locks stand one after
-- the other: name, holder, time to live in milliseconds or 0 for each that is taken; name, holder for each that is freed.
-- Answers: { seq, writes to shared keys that failed, an answer for each unit }. That is 0 for one that was done, the
-- place in compare that was in its way, { place in take, token } or { fences }.
--
-- This is where a server's time goes, and Redis has one processor for all nodes. Every text that a script makes costs by
-- its length, every step of Lua and every command costs as well: hence so few of them.

local settings, epoch, known, random = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[7]
local hints, hint_lengths = ARGV[5], ARGV[6]
local foreseen = ARGV[8]
local FIELD_COUNTS, FIRST_FIELD = 9, 10
-- Digits of the handle's id, and of each length.
local HANDLE, LENGTH = 16, 8
-- Where in a form the compares begin, and how many values there are for each compare and each change.
local FIRST_COMPARE, COMPARE, CHANGE = 7, 2, 6
-- A lock that Cronken's nodes want as well is not free before its occurrence is so old for all of them.
local FREE_AFTER_MILLIS = 2000
-- Nobody asks for the fences of these, and there is a new one for each event.
local PASSING = '#cronhold/event/'

local refused, stored_seq, by, has_peers = standing(epoch, known)
if refused then return refused end

local seq = stored_seq + 1
local seq_digits = string.format('%016x', seq)
local stamp = ' ' .. seq_digits .. ' '
-- Where bodies begin when they have something before them.
local BODY = foreseen ~= '' and 35
local time = redis.call('TIME')
local now_millis = time[1] * 1000 + math.floor(time[2] / 1000)
local batch = records()
local found, now = batch.found, batch.now
local args = ARGV
-- By kind: where the field of the next compare stands.
local next_fields = {}
-- By kind, by field: the version of a record as it stands, '' when there is none.
local versions = {}
-- By name: the token that is stored, the fence of the latest holder, whether the lock has changed, how long it lives,
-- and who has freed it.
local tokens, fences, changed_locks, lives, freed_by = {}, {}, {}, {}, {}

-- Reads what the units speak of. Answers with where they begin.
local function read_all()
  local counts, from = cmsgpack.unpack(args[FIELD_COUNTS]), FIRST_FIELD
  for kind = PAUSE, FOREIGN do
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

-- Takes a form apart.
local function read_form(text)
  local form = cmsgpack.unpack(text)
  form.size = form[1] + 1
  form.last_compare = FIRST_COMPARE + COMPARE * form[2] - 1
  form.last_change = form.last_compare + CHANGE * form[3]
  form.has_locks = form[4] + form[5] > 0
  form.has_changes = form.has_locks or form[3] > 0
  return form
end

-- The lock that stands in the way of a unit.
local function held_lock(form, start)
  local first = start + form[6]
  local frees = first + 3 * form[4]
  for at = first, frees - 1, 3 do
    local name = args[at]
    local token = tokens[name]
    local holder = token and holder_of(token)
    local is_free = not token or holder == args[at + 1]
    for place = frees, frees + 2 * form[5] - 1, 2 do
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

-- A run that holds a lock already keeps its fence.
local function take_lock(name, holder, life, version)
  local own_fence = tokens[name] and tonumber(string.match(tokens[name], '^%x+:(%d+):'))
  local fence = own_fence or math.max(now_millis, tonumber(fences[name] or '0') + 1)
  local shown = string.format('%.0f', fence)
  fences[name], lives[name], changed_locks[name] = shown, life, true
  tokens[name] = table.concat({ holder, shown, version, life, random }, ':')
  return fence
end

-- What the projection hears when everything is decided. By run: the form of the unit that wrote it last, where the unit
-- begins, and where in the form that stands. By job: `1` when it is paused, and whether it is there. Whether everything is
-- paused, when that is written.
local shown_forms, shown_starts, shown_places, shown_pauses, shown_jobs, shown_all = {}, {}, {}, {}, {}, nil

local function apply_locks(form, start)
  local first, version = start + form[6], args[start + 1]
  local frees = first + 3 * form[4]
  for at = frees, frees + 2 * form[5] - 1, 2 do free_lock(args[at], args[at + 1]) end
  if form[4] == 0 then return 0 end
  local answer = {}
  for at = first, frees - 1, 3 do answer[#answer + 1] = take_lock(args[at], args[at + 1], args[at + 2], version) end
  return { answer }
end

-- Decides all units, one after the other. Answers with how many there are, which are refused, and whether anything
-- changes. What it uses most is named here once more: what stands outside of a function is reached by a step of its own.
local function decide(start, answer)
  local args, found, now, versions, next_fields, sub, PAUSE, RUN = args, found, now, versions, next_fields, sub, PAUSE, RUN
  local is_complete = foreseen == seq_digits
  local forms, compared, is_refused, unit, has_changes, last = {}, {}, {}, 0, false, #args
  while start <= last do
    local form = forms[args[start]]
    if not form then
      form = read_form(args[start])
      forms[args[start]] = form
    end
    unit = unit + 1
    local version, result, place = args[start + 1], 0, 0
    for at = FIRST_COMPARE, form.last_compare, COMPARE do
      local kind, expected = form[at], form[at + 1]
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
      if is ~= (expected == 0 and '' or args[start + expected]) and result == 0 then result = place end
    end
    if form.has_locks and result == 0 then result = held_lock(form, start) or 0 end
    if result ~= 0 then
      is_refused[unit] = true
    else
      local head = version .. stamp
      for at = form.last_compare + 1, form.last_change, CHANGE do
        local field, kind, body = compared[form[at]], form[at + 1], form[at + 2]
        if body == 0 then
          now[kind][field], versions[kind][field] = false, ''
        else
          local value = args[start + body]
          if not is_complete then value = head .. (BODY and sub(value, BODY) or value) end
          now[kind][field], versions[kind][field] = value, version
        end
        if kind == RUN then
          shown_forms[field], shown_starts[field], shown_places[field] = form, start, at + 3
        elseif kind == JOB_STATE then
          shown_pauses[field] = form[at + 3]
        elseif kind == JOB then
          shown_jobs[field] = body ~= 0
        elseif kind == PAUSE then
          shown_all = form[at + 3] == '1'
        end
      end
      has_changes = has_changes or form.has_changes
      if form.has_locks then result = apply_locks(form, start) end
    end
    answer[unit + 2] = result
    start = start + form.size
  end
  return unit, is_refused, has_changes
end

-- How long a lock stays after it was freed. The id of a run begins with the milliseconds of its nominal time.
local function afterlife(name)
  if not has_peers or not freed_by[name] then return 0 end
  local rest = tonumber(sub(freed_by[name], 1, 12), 16) + FREE_AFTER_MILLIS - now_millis
  -- A run that somebody started before its time is in nobody's way.
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
    if token and sub(name, 1, #PASSING) ~= PASSING then
      kept[#kept + 1] = name
      kept[#kept + 1] = fences[name]
    end
  end
  send('HSET', FENCES, kept)
end

local function write_projection()
  local show = projection(ns, settings, time)
  local found, now, jobs = found[RUN], now[RUN], batch.jobs
  for id, form in pairs(shown_forms) do
    local old, job = found[id], jobs[id]
    local class = old and class_of(old)
    if now[id] then
      local place = shown_places[id]
      local texts = shown_starts[id] + form[place + 1]
      local is_owned = class == OPEN and owner_of(old) ~= NO_OWNER
      show.run(id, job, class, is_owned, form[place], form[place + 2], args[texts], args[texts + 1])
    elseif old then
      show.gone(id, class, job)
    end
  end
  for job, is_paused in pairs(shown_pauses) do show.pause(job, is_paused == '1') end
  for job, is_there in pairs(shown_jobs) do show.job(job, is_there) end
  if shown_all ~= nil then show.pause_all(shown_all) end
  return show.finish()
end

-- Tells others of the units that were done.
local function tell(units, is_refused)
  if next(is_refused) then
    local parts, at = { sub(hints, 1, HANDLE) }, HANDLE
    for unit = 1, units do
      local length = tonumber(sub(hint_lengths, LENGTH * (unit - 1) + 1, LENGTH * unit), 16)
      if not is_refused[unit] then parts[#parts + 1] = sub(hints, at + 1, at + length) end
      at = at + length
    end
    hints = table.concat(parts)
  end
  -- The units are done, whether others can be told or not.
  redis.pcall('PUBLISH', HINTS, hints)
end

local answer = { seq, 0 }
local units, is_refused, has_changes = decide(read_all(), answer)
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
-- From here on nothing may fail as a whole: the units are written.
local is_shown, failures = pcall(write_projection)
answer[2] = is_shown and failures or 1
tell(units, is_refused)
return answer
