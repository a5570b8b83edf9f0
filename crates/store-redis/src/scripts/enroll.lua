-- Assigns a number to a new writer. Needs prelude.lua and generation.lua before it.
--
-- ARGV: namespace, the position of the client (see `check_position`), its seq, an epoch for a store without one, the
-- schema of our keys, and who runs the same jobs: `cronken`, `none`, or empty to leave that unchanged. Returns the
-- writer number, the epoch, the seq and whether nodes of Cronken run the same jobs (1 or 0); or the reason why requests
-- are rejected.

local epoch, known, new_epoch, schema, peers = ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], ARGV[6]
-- Writer numbers rise with time, also if all data was lost: by at least one a minute.
local SECONDS_A_NUMBER = 60
-- Writer numbers start over at this one. By then all records of the writers before have been written again, and none
-- of their commits is under way.
local WRITERS = 2147483648

-- Every client stores the seq of its last commit, and a node raises it with each heartbeat. When there are this many
-- fields, the older half is deleted. `dropped` has the highest of them, so that a client whose field was deleted does not
-- conclude that its commit was lost.
local CLIENTS_MAX = 1000

local function drop_old_clients()
  if redis.call('HLEN', META) <= CLIENTS_MAX then return end
  local all, clients = redis.call('HGETALL', META), {}
  for at = 1, #all, 2 do
    if sub(all[at], 1, 3) == 'by:' then clients[#clients + 1] = { tonumber(all[at + 1]) or 0, all[at] } end
  end
  table.sort(clients, function(one, other) return one[1] < other[1] end)
  local count = math.floor(#clients / 2)
  if count == 0 then return end
  local dropped = math.max(clients[count][1], tonumber(redis.call('HGET', META, 'dropped') or '0') or 0)
  redis.call('HSET', META, 'dropped', string.format('%.0f', dropped))
  for place = 1, count do redis.call('HDEL', META, clients[place][2]) end
end

local refused, seq, _, has_peers = check_position(epoch, known)
if refused then return refused end
local meta = read('HMGET', META, 'schema', 'writers')
if meta[1] and meta[1] ~= schema then
  give_up(META, 'it has schema ' .. meta[1] .. ', and this program supports ' .. schema)
end
local past = math.floor((redis.call('TIME')[1] - FIRST_SECOND) / SECONDS_A_NUMBER)
local writer = math.max((tonumber(meta[2] or '0') or 0) + 1, past)
-- Zero is the number of the store itself.
if writer % WRITERS == 0 then writer = writer + 1 end
redis.call('HSET', META, 'schema', schema, 'writers', string.format('%.0f', writer))
if redis.call('HSETNX', META, 'epoch', new_epoch) == 1 then
  seq = math.max(seq, seq_of_now())
  raise_beats()
end
redis.call('HSET', META, 'seq', string.format('%.0f', seq))
if server ~= '' then redis.call('HSET', META, 'server', server) end
if peers == 'none' then redis.call('HDEL', META, 'peers') elseif peers ~= '' then redis.call('HSET', META, 'peers', peers) end
if peers ~= '' then has_peers = peers ~= 'none' end
drop_old_clients()
return { writer % WRITERS, redis.call('HGET', META, 'epoch'), seq, has_peers and 1 or 0 }
