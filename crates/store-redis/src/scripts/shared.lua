-- Jobs as other programs write them: `<ns>:jobs`, and beside it the digests of what we have settled.
-- KEYS: the hash of jobs, the hash of digests. ARGV: `read` and names, or `settle` and for each form its name, and twice
-- (as found, as it is to be) `+` with a text or `-` for none.
local jobs, digests = KEYS[1], KEYS[2]

-- For each name: its text (or false), and 0 when it was never settled, 1 when it is as it was settled, 2 otherwise.
local function read()
  local answer = {}
  for index = 2, #ARGV do
    local text, digest = redis.call('HGET', jobs, ARGV[index]), redis.call('HGET', digests, ARGV[index])
    local standing = 0
    if digest then
      standing = text and redis.sha1hex(text) == digest and 1 or 2
    end
    answer[#answer + 1] = text
    answer[#answer + 1] = standing
  end
  return answer
end

local function settle_one(name, found, text)
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
  redis.call('HSET', digests, name, redis.sha1hex(plain))
  return 1
end

if ARGV[1] == 'read' then
  return read()
end
local answer = {}
for index = 2, #ARGV, 3 do
  answer[#answer + 1] = settle_one(ARGV[index], ARGV[index + 1], ARGV[index + 2])
end
return answer
