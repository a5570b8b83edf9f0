-- Reads held locks. Needs prelude.lua before it.

-- When a lock expires. Servers before 7.0 only report the remaining time.
local function end_of_lock(key)
  local at = redis.pcall('PEXPIRETIME', key)
  if type(at) == 'number' then return at end
  local time, rest = redis.call('TIME'), redis.call('PTTL', key)
  return rest < 0 and rest or time[1] * 1000 + math.floor(time[2] / 1000) + rest
end

local function load_lock(name)
  local token = read_token(name)
  return token and { token, end_of_lock(lock_key(name)) }
end
