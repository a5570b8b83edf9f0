-- What the scripts share: where things are, what a stored record looks like, and how commands are sent. ARGV[1] is the
-- namespace in every script.
--
-- A record is stored as one text: fields of fixed width, so that they are found without reading, then JSON.
--
--   version(16 hex) seq(16 hex) due(16 hex, or dashes) REST\n{JSON}
--
-- The REST of a cursor is the time it has come to; of a run it is `state owner number job`; of a node
-- `incarnation draining beat gone`; others have none. Times are microseconds with their sign turned, so that their hex
-- digits are in the order of time. The client makes everything from `due` on.

local ns = ARGV[1]
local own = ns .. ':cronhold:'
local META = own .. 'meta'
local HEALING = own .. 'healing'
local DUE = own .. 'due'
local FENCES = own .. 'fences'
local HINTS = own .. 'hints'
local RUNS_BY_ID = own .. 'index:runs'
local NODE_RUNS = own .. 'node:'
local RUNS_BY_JOB = own .. 'index:runs_by_job'

-- Kinds of records by their number, as the client counts them.
local PAUSE, JOB, JOB_STATE, CURSOR, BACKLOG = 0, 1, 2, 3, 4
local IDENTITY, RUN, LOCK, NODE, FOREIGN = 5, 6, 7, 8, 9
local TABLES = {
  [PAUSE] = own .. 'pause',
  [JOB] = own .. 'jobs',
  [JOB_STATE] = own .. 'job_states',
  [CURSOR] = own .. 'cursors',
  [BACKLOG] = own .. 'backlogs',
  [IDENTITY] = own .. 'identities',
  [RUN] = own .. 'runs',
  [NODE] = own .. 'nodes',
}
-- Kinds that are listed by their fields.
local INDEXES = {
  [JOB] = own .. 'index:jobs',
  [JOB_STATE] = own .. 'index:job_states',
  [CURSOR] = own .. 'index:cursors',
  [BACKLOG] = own .. 'index:backlogs',
}

-- Values of one command: Lua can hand over some thousands. The number is even, because many come in pairs.
local PART = 1000
local NO_TIME = '----------------'
local NO_OWNER = string.rep('-', 32)

local sub, byte, find = string.sub, string.byte, string.find

-- The version is `sub(value, 1, 16)`, when it is due `sub(value, 35, 50)`: commits spell these out, because a call costs
-- more than what it does.
local function seq_of(value) return sub(value, 18, 33) end
-- What a cursor has come to.
local function last_of(value) return sub(value, 52, 67) end
-- The state of a run by its number, `0` to `8`.
local function state_of(value) return sub(value, 52, 52) end
local function owner_of(value) return sub(value, 54, 85) end
local function number_of(value) return sub(value, 87, 102) end
local function job_of(value) return sub(value, 104, find(value, '\n', 104, true) - 1) end

-- Classes of runs: `0` has not ended, `1` success, `2` failure, `3` error, `4` skipped. They follow from the state, whose
-- number is one of the digits `0` to `8`.
local OPEN = '0'
local CLASSES = { [0] = OPEN, OPEN, OPEN, OPEN, OPEN, '1', '2', '3', '4' }
local function class_of(value) return CLASSES[byte(value, 52) - 48] end

-- The node that owns a run that has not ended; false when none does.
local function open_owner_of(value)
  local owner = owner_of(value)
  return owner ~= NO_OWNER and owner
end

-- The lock of a validation is Cronken's own, and has its name as it stands.
local function lock_key(name)
  return ns .. ':locks:' .. (name == '#cronhold/validation' and '__validation__' or redis.sha1hex(name))
end
local function node_key(node) return NODE_RUNS .. node end

-- A lock that we have freed may stay a while for nodes of another kind, with this before its token. For us it is free.
local FREED = 'freed:'

-- The token of a lock, false when nobody holds it. The key is not ours alone: what is no text is somebody's all the
-- same.
local function read_token(name)
  local token = redis.pcall('GET', lock_key(name))
  if type(token) == 'table' then return 'something of a wrong type' end
  return token and sub(token, 1, #FREED) ~= FREED and token
end

-- The run that holds a lock; the whole token, when a program of another kind has written it.
local function holder_of(token) return sub(token, 33, 33) == ':' and sub(token, 1, 32) or token end

local function give_up(key, why) error('CRONHOLD-BROKEN the key ' .. key .. ' cannot be used: ' .. why, 0) end

-- A command on a key of ours. One that holds something else is named.
local function read(command, key, ...)
  local answer = redis.pcall(command, key, ...)
  if type(answer) == 'table' and answer.err then give_up(key, answer.err) end
  return answer
end

-- Fields of a hash that stand in a list, in parts, into a table; false for those that are not there. Without places, all
-- that the list has.
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

-- A command that writes, in parts.
local function send(command, key, values)
  for first = 1, #values, PART do
    redis.call(command, key, unpack(values, first, math.min(first + PART - 1, #values)))
  end
end

-- A key that is written next is what it should be. A command that fails half way cannot be undone.
local function check_type(key, expected)
  local found = redis.call('TYPE', key).ok
  if found ~= expected and found ~= 'none' then give_up(key, 'it is a ' .. found .. ' and not a ' .. expected) end
end

-- What a client knows: the epoch, the field of META with the seq of its own last commit, and that seq. A store that has
-- gone back and has come as far again by commits of others still has an older one there. Nothing before it enrolls.
local function client_of(text)
  local epoch, by, own = string.match(text, '^(%S+) (%S+) (%d+)$')
  return epoch, by, tonumber(own)
end

-- Why nothing may be written now, when it may not: what is stored is older than what the client has seen, or is being
-- healed. Answers with what stands in the way, the seq that is stored, the client's field when nothing stands in the way,
-- and whether nodes of Cronken run the same jobs.
local function standing(client, known)
  local epoch, by, own = client_of(client)
  local meta = read('HMGET', META, 'epoch', 'seq', by or 'seq', 'peers')
  local has_peers = meta[4] == 'cronken'
  local seq = tonumber(meta[2] or '0') or give_up(META, 'its seq is no number')
  -- One that has committed left its field with the first commit: a field that is not there was lost with it.
  local has_own = not own or (tonumber(meta[3] or '0') or 0) >= own
  if epoch and (meta[1] ~= epoch or seq < known or not has_own) then return { 'back', meta[1] or '', seq }, seq, nil, has_peers end
  -- Mostly this key is not there. In a slot that moves to another server of a Cluster such a key may be there, which is
  -- an error: it ends the script here, before half of something is written.
  local healing = redis.call('PTTL', HEALING)
  if healing ~= -2 then return { 'healing', healing }, seq, nil, has_peers end
  return nil, seq, by, has_peers
end
