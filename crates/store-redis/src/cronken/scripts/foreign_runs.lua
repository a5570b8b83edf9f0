-- Runs of Cronken's nodes, read from Cronken's keys. Runs in `<ns>:cronhold:runs` are our own. A key of the wrong type
-- counts as empty.
--
-- KEYS: the metadata of runs, and a sorted set of runs. ARGV: namespace, then
--   look   first, last       indexes in the set, the highest score first. Returns the number of runs there, including
--                            our own, and id, score and metadata of each foreign run
--   lines  most, run, …      returns the last lines of each run, as one text

local ns, what = ARGV[1], ARGV[2]

local function ask(...)
  local answer = redis.pcall(...)
  if type(answer) == 'table' and answer.err then return {} end
  return answer
end

local function look(first, last)
  local members = ask('ZREVRANGE', KEYS[2], first, last, 'WITHSCORES')
  local ids, scores = {}, {}
  for at = 1, #members, 2 do
    if redis.call('HEXISTS', ns .. ':cronhold:runs', members[at]) == 0 then
      ids[#ids + 1], scores[#scores + 1] = members[at], members[at + 1]
    end
  end
  local found = {}
  local texts = #ids > 0 and ask('HMGET', KEYS[1], unpack(ids)) or {}
  for index, id in ipairs(ids) do
    if texts[index] then
      local count = #found
      found[count + 1], found[count + 2], found[count + 3] = id, scores[index], texts[index]
    end
  end
  return { #members / 2, found }
end

-- The last lines of a run, from a list or a sorted set.
local function lines(run, most)
  local key = ns .. ':rundata:output:' .. run
  local form = redis.call('TYPE', key).ok
  if form == 'list' then return table.concat(redis.call('LRANGE', key, -most, -1)) end
  if form == 'zset' then return table.concat(redis.call('ZRANGE', key, -most, -1), '\n') end
  return ''
end

if what == 'look' then return look(ARGV[3], ARGV[4]) end
local answer = {}
for index = 4, #ARGV do answer[#answer + 1] = lines(ARGV[index], tonumber(ARGV[3])) end
return answer
