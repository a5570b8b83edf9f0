-- Writes records together with their index entries. Needs prelude.lua before it.
--
--   local batch = records()
--   batch.found[kind][field]             stored values; a record must be read before it is written
--   batch.now[kind][field]               new values; false for a deleted record
--   batch.get(kind, field)               the current value; false if it does not exist
--   batch.check()                        fails if a key that will be written has the wrong type
--   batch.jobs[run]                      the job of each run that is written or deleted, after `check`
--   batch.old_jobs[run]                  its job before, if that has another name
--   batch.finish()                       writes everything, a few commands for many records
--
-- Indexes:
--
--   index:jobs, index:job_states, index:cursors, index:backlogs, index:identities   the fields of the hash
--   index:runs           class, id
--   index:runs_by_job    job, NUL, class, id
--   index:runs_by_end    end, class, id of finished runs
--   index:actions        the fields of actions that are not done
--   due                  due (see `slot_of`), kind, field
--   node:<id>            the set of unfinished runs that a node owns
--
-- Indexes are sorted sets whose scores are all 0: members are in byte order.
--
-- Every commit runs this code, so lengths are counted instead of queried, and parts of values are extracted once.

-- A sorted set: added scores and members, removed members, and their numbers.
local function sorted_set(key) return { key = key, added = {}, adds = 0, removed = {}, removes = 0 } end

local function add(set, member)
  local adds, added = set.adds, set.added
  added[adds + 1], added[adds + 2] = '0', member
  set.adds = adds + 2
end

local function remove(set, member)
  local removes = set.removes + 1
  set.removed[removes], set.removes = member, removes
end

local function records()
  local found, now = {}, {}
  for kind = PAUSE, LAST_KIND do
    found[kind], now[kind] = {}, {}
  end
  local due, by_id, by_job = sorted_set(DUE), sorted_set(RUNS_BY_ID), sorted_set(RUNS_BY_JOB)
  local by_end = sorted_set(RUNS_BY_END)
  local sets, hashes = { due, by_id, by_job, by_end }, {}
  -- By node: runs that it gains, and runs that it loses.
  local joined, left = {}, {}
  local batch = { found = found, now = now, jobs = {}, old_jobs = {} }

  local function join(lists, node, id)
    local list = lists[node]
    if not list then
      list = {}
      lists[node] = list
    end
    list[#list + 1] = id
  end

  local function move_owner(id, old, new)
    if old == new then return end
    if old then join(left, old, id) end
    if new then join(joined, new, id) end
  end

  -- The member of a run in the index of ends; false if it is not there.
  local function end_member(id, class, value)
    local ended = class and class ~= OPEN and end_of(value)
    return ended and ended .. class .. id
  end

  local function move_run(id, old, new)
    local old_class, new_class = old and class_of(old), new and class_of(new)
    -- A run changes its job only if the job is renamed.
    local job, old_job = job_of(new or old), job_of(old or new)
    local is_renamed = job ~= old_job
    batch.jobs[id] = job
    if is_renamed then batch.old_jobs[id] = old_job end
    if old_class ~= new_class or is_renamed then
      if old then
        local place = old_class .. id
        remove(by_id, place)
        remove(by_job, old_job .. '\0' .. place)
      end
      if new then
        local place = new_class .. id
        add(by_id, place)
        add(by_job, job .. '\0' .. place)
      end
    end
    local old_end, new_end = end_member(id, old_class, old), end_member(id, new_class, new)
    if old_end ~= new_end then
      if old_end then remove(by_end, old_end) end
      if new_end then add(by_end, new_end) end
    end
    if old_class == OPEN or new_class == OPEN then
      move_owner(id, old_class == OPEN and open_owner_of(old), new_class == OPEN and open_owner_of(new))
    end
  end

  -- Moves a record in the index `due`. The member that an earlier version wrote has the exact time.
  local function move_due(kind, digit, field, old, new)
    local old_slot, new_slot = old and slot_of(kind, old), new and slot_of(kind, new)
    if old_slot == new_slot then return end
    if old_slot then
      remove(due, old_slot .. SLOT_END .. digit .. field)
      remove(due, sub(old, 35, 50) .. digit .. field)
    end
    if new_slot then add(due, new_slot .. SLOT_END .. digit .. field) end
  end

  -- An action, or a set of triggers, is in the index as long as it has a due time.
  local function move_pending(index, field, old, new)
    local was, is = old and sub(old, 35, 50) ~= NO_TIME, new and sub(new, 35, 50) ~= NO_TIME
    if is and not was then add(index, field) end
    if was and not is then remove(index, field) end
  end

  -- Collects the writes of one kind. A record that is created and deleted in the same commit is not written.
  local function gather(kind, key)
    local before, is_run, digit, index = found[kind], kind == RUN, DUE_KINDS[kind], nil
    local lists_due = kind == ACTION or kind == TRIGGERS
    if INDEXES[kind] then
      index = sorted_set(INDEXES[kind])
      sets[#sets + 1] = index
    end
    local put, puts, deleted = {}, 0, {}
    for field, new in pairs(now[kind]) do
      local old = before[field]
      if new then
        put[puts + 1], put[puts + 2] = field, new
        puts = puts + 2
        if index and not lists_due and not old then add(index, field) end
      elseif old then
        deleted[#deleted + 1] = field
        if index and not lists_due then remove(index, field) end
      end
      if lists_due then move_pending(index, field, old, new) end
      if digit then move_due(kind, digit, field, old, new) end
      if is_run and (old or new) then move_run(field, old, new) end
    end
    hashes[#hashes + 1] = { key = key, put = put, deleted = deleted }
  end

  function batch.get(kind, field)
    local value = now[kind][field]
    if value == nil then return found[kind][field] end
    return value
  end

  function batch.check()
    for kind, key in pairs(TABLES) do
      if next(now[kind]) then gather(kind, key) end
    end
    for _, set in ipairs(sets) do
      if set.adds + set.removes > 0 then check_type(set.key, 'zset') end
    end
    for _, nodes in ipairs({ joined, left }) do
      for node in pairs(nodes) do check_type(node_key(node), 'set') end
    end
  end

  function batch.finish()
    for _, hash in ipairs(hashes) do
      send('HDEL', hash.key, hash.deleted)
      send('HSET', hash.key, hash.put)
    end
    for _, set in ipairs(sets) do
      send('ZREM', set.key, set.removed)
      send('ZADD', set.key, set.added)
    end
    for node, runs in pairs(left) do send('SREM', node_key(node), runs) end
    for node, runs in pairs(joined) do send('SADD', node_key(node), runs) end
  end

  return batch
end
