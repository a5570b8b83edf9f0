-- Stores that a node is alive, and renews the locks of its runs. Needs prelude.lua before it.
--
-- ARGV: namespace, position and seq of the client, its handle, the node's id, its body, the hint for other handles,
-- then name, holder and time to live in milliseconds of each lock. Returns the seq, whether nodes of Cronken run the same jobs (1 or 0), and the
-- indexes of the locks that the node has lost.
--
-- The stored drain flag stays while the node lives, because commands set it. A heartbeat that changes only the time is
-- not published.

local epoch, known, handle, node, body, hint = ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local FIRST_LOCK, LOCK_ARGS = 8, 3
-- The version in the token of a lock that no unit has taken.
local NO_UNIT = '0000000000000000'

-- A body has no due, which is 16 dashes; then incarnation (8), draining (1), beat (16), gone (16), with blanks between.
local function incarnation(text) return sub(text, 18, 25) end
local function draining(text) return sub(text, 27, 27) end
local function rest(text) return sub(text, 63) end

local refused, seq, by, has_peers = check_position(epoch, known)
-- Heartbeats continue during a recovery.
if refused and refused[1] == 'back' then return refused end

local stored = read('HGET', TABLES[NODE], node)
local old = stored and sub(stored, 35)
if old and incarnation(old) == incarnation(body) then
  body = sub(body, 1, 26) .. draining(old) .. sub(body, 28)
end
local is_same = old and incarnation(old) == incarnation(body) and draining(old) == draining(body)
  and rest(old) == rest(body)
local version = redis.call('HINCRBY', META, 'beats', 1)
redis.call('HSET', TABLES[NODE], node, string.format('%016x %016x ', version, seq) .. body)
if not is_same then redis.pcall('PUBLISH', HINTS, handle .. hint .. string.format('%016x', seq)) end
-- The store has all commits of the client. Raising its seq keeps the client from being dropped as an old one.
local _, _, own = client_of(epoch)
if by and own > 0 then redis.call('HSET', META, by, string.format('%.0f', seq)) end

-- Takes a lock for its holder again. A store that was rolled back misses renewals, so that a lock may have expired
-- although the node has always renewed it, and its program runs. While commits are rejected, no other run can have taken
-- it meanwhile.
local function take_again(name, holder, life)
  local run = read('HGET', TABLES[RUN], holder)
  if not run or class_of(run) ~= OPEN then return false end
  local token = table.concat({ holder, read('HGET', FENCES, name) or '0', NO_UNIT, life, 'brought-back' }, ':')
  return redis.call('SET', lock_key(name), token, 'NX', 'PX', life) and token
end

local answer = { seq, has_peers and 1 or 0 }
for index = FIRST_LOCK, #ARGV, LOCK_ARGS do
  local name, holder = ARGV[index], ARGV[index + 1]
  local token = read_token(name) or refused and take_again(name, holder, ARGV[index + 2])
  if not token or holder_of(token) ~= holder then
    answer[#answer + 1] = (index - FIRST_LOCK) / LOCK_ARGS
  else
    local life = tonumber(string.match(token, '^%x+:%d+:%x+:(%d+):') or '0')
    if life > 0 then redis.call('PEXPIRE', lock_key(name), life) end
  end
end
return answer
