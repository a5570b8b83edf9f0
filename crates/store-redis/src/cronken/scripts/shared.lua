-- Job definitions in `<ns>:jobs`, which other programs write, and digests of those that we have settled. KEYS: the hash
-- of jobs, the hash of digests, the hash `meta`. ARGV: `read` and names, or `settle` and for each definition its name,
-- twice (as found, as it is to be) `+` with a text or `-` for none, and by whose rules it was read: '' or `theirs`.
local jobs, digests, meta = KEYS[1], KEYS[2], KEYS[3]

-- A digest as it is stored: followed by a space and by whose rules the text was read, if not by ours.
local function marked(digest, reading) return reading == '' and digest or digest .. ' ' .. reading end

-- Which foreign nodes run the same jobs, or ''.
local function peers() return redis.pcall('HMGET', meta, 'peers')[1] or '' end

-- 0 if it was never settled, 1 if it is unchanged since it was settled by our rules, 3 by theirs, 2 otherwise.
local function standing_of(text, known)
  if not known then return 0 end
  local digest = text and redis.sha1hex(text)
  if known == digest then return 1 end
  return digest and known == marked(digest, 'theirs') and 3 or 2
end

-- The peers, and for each name its text (or false) and its standing.
local function read()
  local answer = { peers() }
  for index = 2, #ARGV do
    local text = redis.call('HGET', jobs, ARGV[index])
    local standing = standing_of(text, redis.call('HGET', digests, ARGV[index]))
    answer[#answer + 1] = text
    answer[#answer + 1] = standing
  end
  return answer
end

local function settle_one(name, found, text, reading)
  local there = redis.call('HGET', jobs, name)
  if (there and '+' .. there or '-') ~= found then
    return 0
  end
  if text == '-' then
    redis.call('HDEL', jobs, name)
    redis.call('HDEL', digests, name)
    return 1
  end
  local plain = string.sub(text, 2)
  if text ~= found then
    redis.call('HSET', jobs, name, plain)
  end
  redis.call('HSET', digests, name, marked(redis.sha1hex(plain), reading))
  return 1
end

if ARGV[1] == 'read' then
  return read()
end
local answer = {}
for index = 2, #ARGV, 4 do
  answer[#answer + 1] = settle_one(ARGV[index], ARGV[index + 1], ARGV[index + 2], ARGV[index + 3])
end
return answer
