-- The store has gone back: everybody is told by a new epoch, and nothing is committed for a while. Needs prelude.lua
-- before it.
--
-- ARGV: namespace, what the client knows (see `standing`), the seq that it knows, a new epoch, for how many milliseconds
-- nothing may be committed, the form of our keys. Answers with the epoch that holds now, the seq, and the last of the
-- client's own commits that the store still has; with an empty epoch when nothing is wrong.

local known_text, known, new_epoch, wait, schema = ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5]), ARGV[6]
-- Commits that were lost may have had higher numbers than those that are known of. The next ones are higher for sure.
local GAP = 1048576
-- So many epochs of the past are remembered.
local PAST_MAX = 16

local refused, seq = standing(known_text, known)
if not refused or refused[1] ~= 'back' then return { '', seq, 0 } end

local epoch, by, own = client_of(known_text)
local meta = read('HMGET', META, 'epoch', 'past', by)
local stored_epoch, past, has = meta[1], meta[2] or '', tonumber(meta[3] or '0')

-- Whether somebody has noticed that already, and those of that time have been told.
local is_told = stored_epoch and stored_epoch ~= epoch and string.find(past, epoch, 1, true)
-- The first who notices gives it a new name, so that everybody notices.
if not stored_epoch or stored_epoch == epoch then
  seq = math.max(seq, known) + GAP
  local names = { epoch }
  for name in string.gmatch(past, '%S+') do
    if #names < PAST_MAX then names[#names + 1] = name end
  end
  stored_epoch = new_epoch
  redis.call('HSET', META, 'schema', schema, 'epoch', stored_epoch, 'seq', string.format('%.0f', seq), 'past',
    table.concat(names, ' '))
end
-- Whoever has lost something has runs and locks that nobody else knows of.
if (not is_told or has < own) and redis.call('PTTL', HEALING) < wait then redis.call('SET', HEALING, '1', 'PX', wait) end
return { stored_epoch, seq, has }
