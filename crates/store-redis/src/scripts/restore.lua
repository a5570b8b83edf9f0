-- Restores what a client has written and the store has lost. Needs prelude, generation, records, texts, lines and
-- projection before it.
--
-- ARGV: namespace, settings of the projection, the epoch, the client and its last commit (or '' before its last call),
-- hints, then as MessagePack
--   records  kind, field, seq, value or '' for a deleted one, and what the projection is told, for each
--   locks    name, holder, token, time to live in milliseconds or 0, for each
-- Returns the number of restored records; the stored epoch if it has changed.
--
-- Of two cursors, runs or actions the one that has progressed further wins; of other records the later one. A seq is higher than
-- all before it, also in a store that was lost (see generation.lua), so that records written since the loss win.
--
-- Clients restore their writes in any order. So a deletion is kept for a while: a client that has missed it must not
-- restore an older version afterwards.

local settings, epoch, client, hints = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local items, locks = cmsgpack.unpack(ARGV[6]), cmsgpack.unpack(ARGV[7])
-- No handle has this id, so every handle receives the hints.
local NO_HANDLE = '0000000000000000'
-- Restored records are no newer than what any process has written.
local NO_SEQ = '0000000000000000'

local stored_epoch = read('HGET', META, 'epoch') or ''
if stored_epoch ~= epoch then return stored_epoch end
-- Many records take many calls, and no process may commit before the last of them.
local CALL_MILLIS = 5000
if #items + #locks > 0 then hold_commits(CALL_MILLIS, RECOVERY) end

local batch = records()
local fields = {}
for kind in pairs(TABLES) do fields[kind] = {} end
for at = 1, #items, 5 do
  local of_kind = fields[items[at]]
  of_kind[#of_kind + 1] = items[at + 1]
end
for kind, key in pairs(TABLES) do read_fields(key, fields[kind], batch.found[kind]) end

local DELETIONS = own .. 'restored_deletions'
-- A client that has not restored its writes by then was stopped or unreachable all the time.
local DELETIONS_MILLIS = 86400000
local deletions, new_deletions = {}, {}
do
  local names = {}
  for at = 1, #items, 5 do names[#names + 1] = items[at] .. items[at + 1] end
  read_fields(DELETIONS, names, deletions)
end

-- The progress of a run: waiting, starting, running, stopping, finished.
local PROGRESS = { ['0'] = 0, ['1'] = 0, ['2'] = 1, ['3'] = 2, ['4'] = 3 }
local ENDED = 4
local function progress_of(run) return PROGRESS[state_of(run)] or ENDED end

local function is_newer(kind, seq, value, old)
  if kind == CURSOR and value ~= '' and last_of(value) ~= last_of(old) then
    -- A cursor without a position has dashes there, which sort before all digits.
    return last_of(value) > last_of(old)
  end
  if kind == RUN and value ~= '' and progress_of(value) ~= progress_of(old) then
    return progress_of(value) > progress_of(old)
  end
  if kind == ACTION and value ~= '' then
    -- What was delivered must not be delivered again.
    local is_pending, was_pending = sub(value, 35, 50) ~= NO_TIME, sub(old, 35, 50) ~= NO_TIME
    if is_pending ~= was_pending then return was_pending end
  end
  return seq > seq_of(old)
end

local written, shown_runs, shown_pauses, shown_jobs, shown_all = 0, {}, {}, {}, nil
for at = 1, #items, 5 do
  local kind, field, seq, value, shown = items[at], items[at + 1], items[at + 2], items[at + 3], items[at + 4]
  local old = batch.get(kind, field)
  local name = kind .. field
  local deleted = deletions[name] or ''
  if value == '' and seq > deleted then
    new_deletions[#new_deletions + 1] = name
    new_deletions[#new_deletions + 1] = seq
  end
  local wins = not old and value ~= '' and seq > deleted or old and is_newer(kind, seq, value, old)
  if wins then
    written = written + 1
    batch.now[kind][field] = value ~= '' and value
    if kind == RUN then
      shown_runs[field] = shown
    elseif kind == JOB_STATE then
      shown_pauses[field] = shown
    elseif kind == JOB then
      shown_jobs[field] = value ~= ''
    elseif kind == PAUSE then
      shown_all = sub(shown, 1, 1) == '1'
    end
  end
end
batch.check()
if client ~= '' then
  local by, own = string.match(client, '^(%S+) (%d+)$')
  redis.call('HSET', META, by, own)
end
batch.finish()
if #new_deletions > 0 then
  send('HSET', DELETIONS, new_deletions)
  redis.call('PEXPIRE', DELETIONS, DELETIONS_MILLIS)
end

-- The prefix of reserved locks. No run holds them; their existence carries a meaning.
local RESERVED = '#cronhold/'
for at = 1, #locks, 4 do
  local name, holder, token, life = locks[at], locks[at + 1], locks[at + 2], locks[at + 3]
  local run = read('HGET', TABLES[RUN], holder)
  if sub(name, 1, #RESERVED) == RESERVED or run and class_of(run) == OPEN then
    if life == 0 then
      redis.pcall('SET', lock_key(name), token, 'NX')
    else
      redis.pcall('SET', lock_key(name), token, 'NX', 'PX', life)
    end
    local fence, stored = string.match(token, '^%x+:(%d+):'), read('HGET', FENCES, name)
    local is_mark = sub(name, 1, 16) == '#cronhold/event/' or sub(name, 1, 18) == '#cronhold/request/'
    if is_mark then
      -- Its fence is never read.
    elseif not stored or tonumber(stored) < tonumber(fence) then redis.call('HSET', FENCES, name, fence) end
  end
end

local show = projection(ns, settings, redis.call('TIME'))
for id, text in pairs(shown_runs) do
  local old, job = batch.found[RUN][id], batch.jobs[id]
  local class = old and class_of(old)
  if batch.now[RUN][id] then
    local kind, output, first, second = string.match(text, '^(.)(.)([^%z]*)%z(.*)$')
    show.run(id, job, class, class == OPEN and owner_of(old) ~= NO_OWNER, kind, output, first, second, batch.old_jobs[id])
  elseif old then
    show.gone(id, class, job)
  end
end
for job, text in pairs(shown_pauses) do show.pause(job, sub(text, 1, 1) == '1') end
for job, is_there in pairs(shown_jobs) do show.job(job, is_there) end
if shown_all ~= nil then show.pause_all(shown_all) end
show.finish()
if hints ~= '' then redis.call('PUBLISH', HINTS, NO_HANDLE .. hints .. NO_SEQ) end
return written
