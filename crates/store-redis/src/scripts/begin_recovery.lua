-- Starts the recovery from a rollback: a new epoch stops all processes, and commits are rejected for a while. Needs
-- prelude.lua and generation.lua before it.
--
-- ARGV: namespace, the position of the client (see `check_position`), its seq, a new epoch, for how many milliseconds
-- commits are rejected, the schema of our keys, the highest writer number of the client, and `cronken` if it knows that
-- Cronken's nodes run the same jobs. Returns the current epoch, the seq, and the last commit of the client that the
-- store still has; an empty epoch if there was no rollback.

local known_text, known, new_epoch, wait, schema = ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5]), ARGV[6]
local own_writer, peers = tonumber(ARGV[7]), ARGV[8]
-- Lost commits may have had higher seqs than any that is known. The next commits are certainly above them.
local GAP = 1048576
-- Past epochs that are stored.
local PAST_MAX = 16

local refused, seq = check_position(known_text, known)
if not refused or refused[1] ~= 'back' then return { '', seq, 0 } end

local epoch, by, own = client_of(known_text)
local meta = read('HMGET', META, 'epoch', 'past', by, 'writers')
local stored_epoch, past, has = meta[1], meta[2] or '', tonumber(meta[3] or '0') or 0

-- Whether another process has already started this recovery, for the epoch of this client.
local is_known = stored_epoch and stored_epoch ~= epoch and string.find(past, epoch, 1, true)
local reached = math.max(known, own)
if not is_known then
  -- The first process that detects the rollback sets a new epoch, so that all others detect it. This also applies to an
  -- empty store in which a new process has enrolled: that process must learn that others restore their records.
  local names = { epoch }
  if stored_epoch and stored_epoch ~= epoch then names[2] = stored_epoch end
  for name in string.gmatch(past, '%S+') do
    if #names < PAST_MAX then names[#names + 1] = name end
  end
  stored_epoch = new_epoch
  seq = math.max(seq, reached, seq_of_now()) + GAP
  redis.call('HSET', META, 'schema', schema, 'epoch', stored_epoch, 'past', table.concat(names, ' '))
elseif seq <= reached then
  -- The process that started the recovery had not seen as many commits as this client.
  seq = reached + GAP
end
local writers = math.max(tonumber(meta[4] or '0') or 0, own_writer)
redis.call('HSET', META, 'seq', string.format('%.0f', seq), 'writers', string.format('%.0f', writers))
if peers ~= '' then redis.call('HSET', META, 'peers', peers) end
if server ~= '' then redis.call('HSET', META, 'server', server) end
if not is_known then raise_beats() end
-- A client that has lost commits may have runs and locks that no other process knows.
if not is_known or has < own then hold_commits(wait, RECOVERY) end
return { stored_epoch, seq, has }
