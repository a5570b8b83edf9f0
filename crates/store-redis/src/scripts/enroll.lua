-- A number for a new writer. Needs prelude.lua and ages.lua before it.
--
-- ARGV: namespace, what the client knows (see `standing`), the seq that it knows, an epoch for a store that has none,
-- the form of our keys that the client knows, and who runs the same jobs: `cronken`, `none`, or nothing to leave that as it
-- is. Answers with the writer's number, the epoch, the seq and whether nodes of Cronken run the same jobs (1 or 0); or with
-- what stands in the way.

local epoch, known, new_epoch, schema, peers = ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], ARGV[6]
-- Numbers of writers rise with time, also when what is stored was lost: a minute each.
local SECONDS_A_NUMBER = 60
-- Versions have so many bits for them.
local WRITERS_MAX = 8388608

-- Every client leaves the seq of its last commit, and raises it now and then for as long as it lives (recall.lua). When
-- there are so many, the older half goes.
local CLIENTS_MAX = 1000

local function drop_old_clients()
  if redis.call('HLEN', META) <= CLIENTS_MAX then return end
  local all, clients = redis.call('HGETALL', META), {}
  for at = 1, #all, 2 do
    if sub(all[at], 1, 3) == 'by:' then clients[#clients + 1] = { tonumber(all[at + 1]) or 0, all[at] } end
  end
  table.sort(clients, function(one, other) return one[1] < other[1] end)
  for place = 1, math.floor(#clients / 2) do redis.call('HDEL', META, clients[place][2]) end
end

local refused, seq, _, has_peers = standing(epoch, known)
if refused then return refused end
local meta = read('HMGET', META, 'schema', 'writers')
if meta[1] and meta[1] ~= schema then
  give_up(META, 'its schema is ' .. meta[1] .. ', and this program knows ' .. schema)
end
local past = math.floor((redis.call('TIME')[1] - FIRST_SECOND) / SECONDS_A_NUMBER)
local writer = math.max((tonumber(meta[2] or '0') or 0) + 1, past)
if writer >= WRITERS_MAX then give_up(META, WRITERS_MAX .. ' writers have enrolled; there are no more numbers') end
redis.call('HSET', META, 'schema', schema, 'writers', string.format('%.0f', writer))
if redis.call('HSETNX', META, 'epoch', new_epoch) == 1 then seq = math.max(seq, seq_of_now()) end
redis.call('HSET', META, 'seq', string.format('%.0f', seq))
if peers == 'none' then redis.call('HDEL', META, 'peers') elseif peers ~= '' then redis.call('HSET', META, 'peers', peers) end
if peers ~= '' then has_peers = peers ~= 'none' end
drop_old_clients()
return { writer, redis.call('HGET', META, 'epoch'), seq, has_peers and 1 or 0 }
