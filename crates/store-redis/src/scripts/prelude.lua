-- Shared by all scripts: key names, the layout of stored records, and how commands are sent. ARGV[1] is the namespace, a
-- blank, and the id of the server process, which is empty if the client may not read it.
--
-- A record is stored as one text: fields of fixed width, which need no parsing, then JSON.
--
--   version(16 hex) seq(16 hex) due(16 hex, or dashes) REST\n{JSON}
--
-- The REST of a cursor is its position; of a run `state owner number job`; of a node `incarnation draining beat gone`;
-- other kinds have none. Times are microseconds with the sign bit inverted, so that their hex digits sort by time. The
-- client writes everything from `due` on.

local ns, server = string.match(ARGV[1], '^(.*) (%w*)$')
local own = ns .. ':cronhold:'
local META = own .. 'meta'
local HEALING = own .. 'healing'
local DUE = own .. 'due'
local FENCES = own .. 'fences'
local HINTS = own .. 'hints'
local RUNS_BY_ID = own .. 'index:runs'
local NODE_RUNS = own .. 'node:'
local RUNS_BY_JOB = own .. 'index:runs_by_job'
local RUNS_BY_END = own .. 'index:runs_by_end'

-- Kinds of records by number, as in `cronhold_store::key_names`.
local PAUSE, JOB, JOB_STATE, CURSOR, BACKLOG = 0, 1, 2, 3, 4
local IDENTITY, RUN, LOCK, NODE, FOREIGN, ACTION, POOL, TRIGGERS = 5, 6, 7, 8, 9, 10, 11, 12
local LAST_KIND = TRIGGERS
local TABLES = {
  [PAUSE] = own .. 'pause',
  [JOB] = own .. 'jobs',
  [JOB_STATE] = own .. 'job_states',
  [CURSOR] = own .. 'cursors',
  [BACKLOG] = own .. 'backlogs',
  [IDENTITY] = own .. 'identities',
  [RUN] = own .. 'runs',
  [NODE] = own .. 'nodes',
  [ACTION] = own .. 'actions',
  [POOL] = own .. 'pools',
  [TRIGGERS] = own .. 'triggers',
}
-- Kinds with an index of their fields. Those of actions and triggers have records with a due time: actions that are not
-- done, and sets with pending triggers.
local INDEXES = {
  [JOB] = own .. 'index:jobs',
  [JOB_STATE] = own .. 'index:job_states',
  [CURSOR] = own .. 'index:cursors',
  [BACKLOG] = own .. 'index:backlogs',
  [IDENTITY] = own .. 'index:identities',
  [ACTION] = own .. 'index:actions',
  [POOL] = own .. 'index:pools',
  [TRIGGERS] = own .. 'index:triggers',
}

-- Kinds that can be due, with their letter in the index `due`.
local DUE_KINDS = { [CURSOR] = '3', [BACKLOG] = '4', [RUN] = '6', [ACTION] = ':', [TRIGGERS] = '<' }

-- Values of one command: `unpack` is limited to some thousands. The number is even, because many values are pairs.
local PART = 1000
local NO_TIME = '----------------'
local NO_OWNER = string.rep('-', 32)

local sub, byte, find = string.sub, string.byte, string.find

-- The version is `sub(value, 1, 16)`, the due time `sub(value, 35, 50)`: the commit script inlines these, because a
-- call costs more than its work.

-- The index `due` has the due time without its last six hex digits, which are 16.8 seconds: so most claims of a job that
-- is due every few seconds leave it unchanged. Readers get the exact time from the record.
local SLOT_DIGITS, SLOT_END, NO_SLOT = 10, '000000', '----------'
local function seq_of(value) return sub(value, 18, 33) end
-- The position of a cursor.
local function last_of(value) return sub(value, 52, 67) end
-- The state of a run, `0` to `8`.
local function state_of(value) return sub(value, 52, 52) end
local function owner_of(value) return sub(value, 54, 85) end
-- The first digits of the due time of a record in the index `due`; false if it is not there. Runs that a node owns are
-- not: that node compares all of them with its plan.
local function slot_of(kind, value)
  local slot = sub(value, 35, 44)
  return slot ~= NO_SLOT and (kind ~= RUN or sub(value, 54, 85) == NO_OWNER) and slot
end
local function number_of(value) return sub(value, 87, 102) end
local function job_of(value) return sub(value, 104, (find(value, '\n', 104, true) or 104) - 1) end

-- Classes of runs by state: `0` unfinished, `1` success, `2` failure, `3` error, `4` skipped.
local OPEN = '0'
local CLASSES = { [0] = OPEN, OPEN, OPEN, OPEN, OPEN, '1', '2', '3', '4' }
-- A damaged text counts as an unfinished run.
local function class_of(value) return CLASSES[(byte(value, 52) or 48) - 48] or OPEN end

-- When a finished run ended; false for an unfinished one, and for one that an earlier version wrote.
local END = '{"end":"'
local function end_of(value)
  local line = find(value, '\n', 104, true)
  return sub(value, line + 1, line + #END) == END and sub(value, line + #END + 1, line + #END + 16)
end

-- The node that owns an unfinished run; false if there is none.
local function open_owner_of(value)
  local owner = owner_of(value)
  return owner ~= NO_OWNER and owner
end

-- The lock for validation is one of Cronken's, which does not hash its name.
local function lock_key(name)
  return ns .. ':locks:' .. (name == '#cronhold/validation' and '__validation__' or redis.sha1hex(name))
end
local function node_key(node) return NODE_RUNS .. node end

-- A lock that we have released may stay for a while for Cronken's nodes, with this prefix. For us it is free.
local FREED = 'freed:'

-- The token of a lock; false if it is free. Other programs may write the key: a value that is not a string counts as
-- held.
local function read_token(name)
  local token = redis.pcall('GET', lock_key(name))
  if type(token) == 'table' then return 'something of a wrong type' end
  return token and sub(token, 1, #FREED) ~= FREED and token
end

-- The run that holds a lock; the whole token if another program wrote it.
local function holder_of(token) return sub(token, 33, 33) == ':' and sub(token, 1, 32) or token end

local function give_up(key, why) error('CRONHOLD-BROKEN cannot use the key ' .. key .. ': ' .. why, 0) end

-- Runs a command on one of our keys. The error for a key of the wrong type names it.
local function read(command, key, ...)
  local answer = redis.pcall(command, key, ...)
  if type(answer) == 'table' and answer.err then give_up(key, answer.err) end
  return answer
end

-- Reads fields of a hash in parts into a table; false for missing ones. Without `from` and `till`, reads all of the
-- list.
local function read_fields(key, fields, into, from, till)
  till = till or #fields
  for first = from or 1, till, PART do
    local last = math.min(first + PART - 1, till)
    local found = redis.pcall('HMGET', key, unpack(fields, first, last))
    if found.err then give_up(key, found.err) end
    local before = first - 1
    for index = 1, last - before do into[fields[before + index]] = found[index] end
  end
end

-- Runs a writing command in parts.
local function send(command, key, values)
  for first = 1, #values, PART do
    redis.call(command, key, unpack(values, first, math.min(first + PART - 1, #values)))
  end
end

-- Fails if a key that is about to be written has the wrong type: a script that fails later cannot be rolled back.
local function check_type(key, expected)
  local found = redis.call('TYPE', key).ok
  if found ~= expected and found ~= 'none' then give_up(key, 'it is a ' .. found .. ' instead of a ' .. expected) end
end

-- The position of a client: the epoch, the field of META with the seq of its last commit, and that seq. A store that
-- was rolled back and has reached the same seq again by commits of others still has an older seq in that field. Empty
-- before it enrolls.
local function client_of(text)
  local epoch, by, own = string.match(text, '^(%S+) (%S+) (%d+)$')
  return epoch, by, tonumber(own)
end

-- Why commits are rejected: the value of HEALING.
local RECOVERY, RESTART = 'recovery', 'restart'

-- Rejects commits for at least this many milliseconds.
local function hold_commits(millis, why)
  if redis.call('PTTL', HEALING) < millis then redis.call('SET', HEALING, why, 'PX', millis) end
end

-- Time is counted from the year 2026 on.
local FIRST_SECOND = 1767225600

-- The number of a heartbeat is the version of its node's record. If heartbeats were lost, their numbers must not be
-- assigned again: a writer may still expect such a version. Milliseconds are above all of them, because there is less
-- than one heartbeat in each.
local function raise_beats()
  local time, beats = redis.call('TIME'), tonumber(read('HGET', META, 'beats') or '0') or 0
  local millis = (time[1] - FIRST_SECOND) * 1000 + math.floor(time[2] / 1000)
  redis.call('HSET', META, 'beats', string.format('%.0f', math.max(beats, millis)))
end

-- The latest commits were made on another server process: the server has restarted, or another one has taken over. Some
-- commits may be lost, and only the nodes that made them can tell. Commits are rejected until every live node has sent a
-- heartbeat. The line before this file defines CONTACT_MILLIS.
local function change_server()
  redis.call('HSET', META, 'server', server)
  raise_beats()
  hold_commits(CONTACT_MILLIS, RESTART)
end

-- Checks for a rollback: whether the stored position is older than the client's, or a recovery is under way. Returns
-- the reason to reject the request, the stored seq, the client's field if there is no reason, whether nodes of Cronken
-- run the same jobs, and why the store is sealed, or false.
local function check_position(client, known)
  local epoch, by, own = client_of(client)
  local meta = read('HMGET', META, 'epoch', 'seq', by or 'seq', 'peers', 'dropped', 'server', 'sealed')
  local has_peers = meta[4] == 'cronken'
  local seq = tonumber(meta[2] or '0') or give_up(META, 'its seq is not a number')
  -- A client stores its field with its first commit. If the field is missing, that commit was lost, unless the field was
  -- dropped because there were too many (enroll.lua).
  local stored = meta[3] or meta[5] or '0'
  local has_own = not own or (tonumber(stored) or 0) >= own
  -- An empty store has no server yet. Nodes from before its loss find their epoch missing.
  if meta[1] and meta[6] ~= server and server ~= '' then change_server() end
  if epoch and (meta[1] ~= epoch or seq < known or not has_own) then return { 'back', meta[1] or '', seq }, seq, nil, has_peers end
  -- Usually this key does not exist. If its slot is being moved to another node of a Cluster, the command fails, and
  -- ends the script before anything is written.
  local healing = redis.call('PTTL', HEALING)
  if healing ~= -2 then return { 'healing', healing, redis.call('GET', HEALING) }, seq, nil, has_peers end
  return nil, seq, by, has_peers, meta[7]
end
