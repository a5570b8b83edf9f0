-- Records that are written together, with everything that they are found by. Needs prelude.lua before it.
--
--   local batch = records()
--   batch.found[kind][field]             values as they were stored; whoever writes a record has read it before
--   batch.get(kind, field)               a value as it stands now; false when there is none
--   batch.put(kind, field, value)        value is false for a record that is deleted
--   batch.check()                        the keys that will be written are what they should be
--   batch.finish()                       writes everything, a few commands for many records
--
-- Keys of lists:
--
--   index:jobs, index:job_states, index:cursors, index:backlogs   the fields of the hash
--   index:runs           class, id
--   index:runs_by_job    job, NUL, class, id
--   due                  due, kind, field
--   node:<id>            a set of the runs that a node owns and that have not ended
--
-- The lists are sorted sets whose scores are all 0: their members are in the order of their bytes.

local function records()
  local batch = { found = { [FOREIGN] = {} }, now = { [FOREIGN] = {} } }
  for kind in pairs(TABLES) do
    batch.found[kind], batch.now[kind] = {}, {}
  end
  -- By key: scores and members that come, and members that go.
  local added, removed = {}, {}
  -- By node: runs that it owns from now on, and those that it does not own any more.
  local joined, left = {}, {}

  local function of(lists, key)
    local list = lists[key]
    if not list then
      list = {}
      lists[key] = list
    end
    return list
  end

  -- One member takes the place of another; either may be missing.
  local function move(key, old, new)
    if old == new then return end
    if old then
      local list = of(removed, key)
      list[#list + 1] = old
    end
    if new then
      local list = of(added, key)
      local length = #list
      list[length + 1], list[length + 2] = '0', new
    end
  end

  local function move_owner(id, old, new)
    if old == new then return end
    if old then table.insert(of(left, node_key(old)), id) end
    if new then table.insert(of(joined, node_key(new)), id) end
  end

  local function move_run(id, old, new)
    local old_place = old and class_of(old) .. id
    local new_place = new and class_of(new) .. id
    move(RUNS_BY_ID, old_place, new_place)
    move(RUNS_BY_JOB, old and job_of(old) .. '\0' .. old_place, new and job_of(new) .. '\0' .. new_place)
    move_owner(id, old and open_owner_of(old), new and open_owner_of(new))
  end

  -- Where a record stands among those that something has to happen to.
  local function obligation(kind, field, value)
    local due = value and due_of(value) or NO_TIME
    return due ~= NO_TIME and due .. kind .. field or nil
  end

  local function move_record(kind, field, old, new)
    if INDEXES[kind] then move(INDEXES[kind], old and field, new and field) end
    if kind == CURSOR or kind == BACKLOG or kind == RUN then
      move(DUE, obligation(kind, field, old), obligation(kind, field, new))
    end
    if kind == RUN then move_run(field, old, new) end
  end

  function batch.get(kind, field)
    local value = batch.now[kind][field]
    if value == nil then return batch.found[kind][field] end
    return value
  end

  function batch.put(kind, field, value) batch.now[kind][field] = value end

  function batch.check()
    for kind, values in pairs(batch.now) do
      for field, value in pairs(values) do move_record(kind, field, batch.found[kind][field], value) end
    end
    for _, lists in ipairs({ added, removed }) do
      for key in pairs(lists) do check_type(key, 'zset') end
    end
    for _, sets in ipairs({ joined, left }) do
      for key in pairs(sets) do check_type(key, 'set') end
    end
  end

  local function write_table(kind)
    local put, deleted = {}, {}
    for field, value in pairs(batch.now[kind]) do
      if value then
        put[#put + 1] = field
        put[#put + 1] = value
      elseif batch.found[kind][field] then
        deleted[#deleted + 1] = field
      end
    end
    send('HDEL', TABLES[kind], deleted)
    send('HSET', TABLES[kind], put)
  end

  function batch.finish()
    for kind in pairs(TABLES) do write_table(kind) end
    for key, members in pairs(removed) do send('ZREM', key, members) end
    for key, members in pairs(added) do send('ZADD', key, members) end
    for key, runs in pairs(left) do send('SREM', key, runs) end
    for key, runs in pairs(joined) do send('SADD', key, runs) end
  end

  return batch
end
