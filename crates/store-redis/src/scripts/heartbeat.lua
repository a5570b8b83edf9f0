-- A node is alive, and the locks of its runs are renewed. Needs prelude.lua before it.
--
-- ARGV: namespace, epoch and seq that the client knows, the client's handle, the node's id, its body, the hint that
-- tells of it, then name and holder of each lock. Answers with the seq, whether nodes of Cronken run
-- the same jobs (1 or 0), and the places of the locks that are lost.
--
-- The node keeps whether it drains for as long as it lives: others say so, and it does not know. Nobody has to hear of
-- a beat in which nothing but the time is new.

local epoch, known, handle, node, body, hint = ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local FIRST_LOCK = 8

-- A body has no due, which is 16 dashes; then incarnation (8), draining (1), beat (16), gone (16), with blanks between.
local function incarnation(text) return sub(text, 18, 25) end
local function draining(text) return sub(text, 27, 27) end
local function rest(text) return sub(text, 63) end

local refused, seq, _, has_peers = standing(epoch, known)
-- While the store is healed its nodes live on.
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
if not is_same then redis.pcall('PUBLISH', HINTS, handle .. hint) end

local answer = { seq, has_peers and 1 or 0 }
for index = FIRST_LOCK, #ARGV, 2 do
  local name, holder = ARGV[index], ARGV[index + 1]
  local token = read_token(name)
  if not token or holder_of(token) ~= holder then
    answer[#answer + 1] = (index - FIRST_LOCK) / 2
  else
    local life = tonumber(string.match(token, '^%x+:%d+:%x+:(%d+):') or '0')
    if life > 0 then redis.call('PEXPIRE', lock_key(name), life) end
  end
end
return answer
