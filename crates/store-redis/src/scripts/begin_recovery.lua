-- The store has gone back: everybody is told by a new epoch, and nothing is committed for a while. Needs prelude.lua and
-- ages.lua before it.
--
-- ARGV: namespace, what the client knows (see `standing`), the seq that it knows, a new epoch, for how many milliseconds
-- nothing may be committed, the form of our keys, the highest number of a writer that the client knows, and `cronken` when it
-- knows that Cronken's nodes run the same jobs. Answers with the epoch that holds now, the seq, and the last of the client's own commits that the store still has; with an empty epoch
-- when nothing is wrong.

local known_text, known, new_epoch, wait, schema = ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5]), ARGV[6]
local own_writer, peers = tonumber(ARGV[7]), ARGV[8]
-- Commits that were lost may have had higher numbers than those that are known of. The next ones are higher for sure.
local GAP = 1048576
-- So many epochs of the past are remembered.
local PAST_MAX = 16

local refused, seq = standing(known_text, known)
if not refused or refused[1] ~= 'back' then return { '', seq, 0 } end

local epoch, by, own = client_of(known_text)
local meta = read('HMGET', META, 'epoch', 'past', by, 'writers')
local stored_epoch, past, has = meta[1], meta[2] or '', tonumber(meta[3] or '0') or 0

-- Whether somebody has noticed that already, and those of that time have been told.
local is_told = stored_epoch and stored_epoch ~= epoch and string.find(past, epoch, 1, true)
local reached = math.max(known, own)
if not is_told then
  -- The first who notices gives it a new name, so that everybody notices. That goes for a store as well that somebody
  -- has begun anew who did not know of the old one: whoever was there first has to hear that others bring theirs back.
  local names = { epoch }
  if stored_epoch and stored_epoch ~= epoch then names[2] = stored_epoch end
  for name in string.gmatch(past, '%S+') do
    if #names < PAST_MAX then names[#names + 1] = name end
  end
  stored_epoch = new_epoch
  seq = math.max(seq, reached, seq_of_now()) + GAP
  redis.call('HSET', META, 'schema', schema, 'epoch', stored_epoch, 'past', table.concat(names, ' '))
elseif seq <= reached then
  -- Whoever noticed first did not know how far this client had come.
  seq = reached + GAP
end
local writers = math.max(tonumber(meta[4] or '0') or 0, own_writer)
redis.call('HSET', META, 'seq', string.format('%.0f', seq), 'writers', string.format('%.0f', writers))
if peers ~= '' then redis.call('HSET', META, 'peers', peers) end
-- Whoever has lost something has runs and locks that nobody else knows of.
if not is_told or has < own then prolong_healing(wait) end
return { stored_epoch, seq, has }
