-- Reads a page of a list as one snapshot: alternating fields and values. Needs prelude.lua before it.
--
-- ARGV: namespace, the list, then
--   due      min, until, limit: records that are due. Returns the member of the index `due` after which to continue, ''
--            at the end; then letter of the kind with field, and due time, for each
--   fields   kind, min, max, limit: records by their fields
--   indexed  kind, cursor: adds fields of a hash that was written without an index to its index, some at a time. Returns
--            the cursor of the next call, '0' at the end or if all are there
--   runs     job or '', class, after or '', limit: runs of one class, the earliest id first
--   owned    node, after or '', limit: runs of a node that are unfinished, the earliest id first
--   nodes    all nodes, in no order
--   latest   job or '', classes, below or '', from or '', states or '', number or '', since or '', limit: runs, the
--            latest id first. Returns the id before which to continue, '' at the end; then fields and values.
--   ended    min, limit: members of the index of ends, without values
--   ids      ids: these runs

local list = ARGV[2]
-- Runs that one call scans, even if few of them match.
local LOOK_MAX = 1000

-- Fields with their values, from a table.
local function with_values(key, fields)
  local values, answer = {}, {}
  read_fields(key, fields, values)
  for index, field in ipairs(fields) do
    answer[2 * index - 1], answer[2 * index] = field, values[field]
  end
  return answer
end

local function ids_of(members)
  local ids = {}
  for index, member in ipairs(members) do ids[index] = sub(member, -32) end
  return ids
end

-- The index for runs of a class, and the prefix of its members.
local function place_of(job, class)
  if job == '' then return RUNS_BY_ID, class end
  return RUNS_BY_JOB, job .. '\0' .. class
end

local function runs(job, class, after, limit)
  local key, prefix = place_of(job, class)
  local from = after == '' and '[' .. prefix or '(' .. prefix .. after
  return with_values(TABLES[RUN], ids_of(read('ZRANGEBYLEX', key, from, '(' .. prefix .. 'g', 'LIMIT', 0, limit)))
end

local function owned(node, after, limit)
  local ids = {}
  for _, id in ipairs(read('SMEMBERS', node_key(node))) do
    if id > after then ids[#ids + 1] = id end
  end
  table.sort(ids)
  for index = #ids, limit + 1, -1 do ids[index] = nil end
  return with_values(TABLES[RUN], ids)
end

-- Whether a run had not ended before a time. The caller decides about runs without a known end.
local function is_since(value, since)
  return since == '' or class_of(value) == OPEN or (end_of(value) or since) >= since
end

local function latest(job, classes, below, from, states, number, since, limit)
  local ids, look = {}, math.min(LOOK_MAX, limit)
  -- If most runs do not match, more must be scanned.
  if states ~= '' or number ~= '' or since ~= '' then look = LOOK_MAX end
  for class in string.gmatch(classes, '.') do
    local key, prefix = place_of(job, class)
    local top = '(' .. prefix .. (below == '' and 'g' or below)
    local found = ids_of(read('ZREVRANGEBYLEX', key, top, '[' .. prefix .. from, 'LIMIT', 0, look))
    for _, id in ipairs(found) do ids[#ids + 1] = id end
  end
  -- Hex digits sort the same in every locale of the server.
  table.sort(ids, function(one, other) return one > other end)
  local is_end = #ids < look
  for index = #ids, look + 1, -1 do ids[index] = nil end
  local values, answer = {}, { is_end and '' or ids[#ids] }
  read_fields(TABLES[RUN], ids, values)
  for _, id in ipairs(ids) do
    local value = values[id]
    local is_wanted = not value or ((states == '' or string.find(states, state_of(value), 1, true))
      and (number == '' or number == number_of(value)) and is_since(value, since))
    if is_wanted then
      answer[#answer + 1] = id
      answer[#answer + 1] = value
      if #answer > 2 * limit then
        answer[1] = id
        break
      end
    end
  end
  return answer
end

local KINDS_BY_LETTER = {}
for kind, letter in pairs(DUE_KINDS) do KINDS_BY_LETTER[letter] = kind end

-- The exact due time of a record that has this member in the index `due`; nil if it must not have it. A damaged record
-- keeps its member, so that it is reported.
local function due_of(member, kind, value)
  if not value then return nil end
  if not string.find(sub(value, 35, 50), '^[%x-]+$') then return sub(member, 1, 16) end
  return slot_of(kind, value) == sub(member, 1, SLOT_DIGITS) and sub(value, 35, 50) or nil
end

-- Replaces members that earlier versions wrote: those with exact times, and those of records that have changed since.
local function replace_members(old, new)
  -- A server that rejects writes can still be read.
  if #old > 0 then redis.pcall('ZREM', DUE, unpack(old)) end
  if #new > 0 then redis.pcall('ZADD', DUE, unpack(new)) end
end

local function due_records(min, till, limit)
  local top = '(' .. sub(till, 1, SLOT_DIGITS) .. 'g'
  local members = read('ZRANGEBYLEX', DUE, min, top, 'LIMIT', 0, LOOK_MAX)
  local fields, values = {}, {}
  for kind in pairs(DUE_KINDS) do fields[kind], values[kind] = {}, {} end
  for _, member in ipairs(members) do
    local of_kind = fields[KINDS_BY_LETTER[sub(member, 17, 17)]]
    if of_kind then of_kind[#of_kind + 1] = sub(member, 18) end
  end
  for kind, of_kind in pairs(fields) do read_fields(TABLES[kind], of_kind, values[kind]) end
  local answer, old, new = { #members == LOOK_MAX and members[LOOK_MAX] or '' }, {}, {}
  for _, member in ipairs(members) do
    local kind, field = KINDS_BY_LETTER[sub(member, 17, 17)], sub(member, 18)
    local due = kind and due_of(member, kind, values[kind][field])
    local is_exact = sub(member, SLOT_DIGITS + 1, 16) ~= SLOT_END
    if kind and (not due or is_exact) then old[#old + 1] = member end
    if due and is_exact then
      new[#new + 1] = '0'
      new[#new + 1] = sub(member, 1, SLOT_DIGITS) .. SLOT_END .. sub(member, 17)
    end
    if due and due <= till then
      answer[#answer + 1] = sub(member, 17)
      answer[#answer + 1] = due
      if #answer > 2 * limit then
        answer[1] = member
        break
      end
    end
  end
  replace_members(old, new)
  return answer
end

-- Fields that one call adds to an index.
local INDEX_STEP = 500

local function indexed(kind, cursor)
  local key, index = TABLES[kind], INDEXES[kind]
  if cursor == '0' and read('HLEN', key) == read('ZCARD', index) then return { '0' } end
  local found = read('HSCAN', key, cursor, 'COUNT', INDEX_STEP)
  local members = {}
  for at = 1, #found[2], 2 do
    members[at], members[at + 1] = '0', found[2][at]
  end
  check_type(index, 'zset')
  send('ZADD', index, members)
  return { found[1] }
end

if list == 'due' then
  return due_records(ARGV[3], ARGV[4], tonumber(ARGV[5]))
elseif list == 'fields' then
  local kind = tonumber(ARGV[3])
  return with_values(TABLES[kind], read('ZRANGEBYLEX', INDEXES[kind], ARGV[4], ARGV[5], 'LIMIT', 0, ARGV[6]))
elseif list == 'indexed' then
  return indexed(tonumber(ARGV[3]), ARGV[4])
elseif list == 'runs' then
  return runs(ARGV[3], ARGV[4], ARGV[5], ARGV[6])
elseif list == 'owned' then
  return owned(ARGV[3], ARGV[4], tonumber(ARGV[5]))
elseif list == 'nodes' then
  return read('HGETALL', TABLES[NODE])
elseif list == 'ended' then
  return read('ZRANGEBYLEX', RUNS_BY_END, ARGV[3], '+', 'LIMIT', 0, ARGV[4])
elseif list == 'ids' then
  local ids = {}
  for index = 3, #ARGV do ids[index - 2] = ARGV[index] end
  return with_values(TABLES[RUN], ids)
end
return latest(ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], tonumber(ARGV[10]))
