-- Times and texts as Cronken writes them. Scripts have no standard library for this.

-- Seconds with six decimals, as Cronken writes times.
local function seconds(micros)
  return string.format('%.0f.%06.0f', math.floor(micros / 1e6), micros % 1e6)
end

local function micros_of(text)
  local whole, part = string.match(text or '', '^(%d+)%.?(%d*)$')
  return whole and tonumber(whole) * 1e6 + tonumber(string.sub(part .. '000000', 1, 6))
end

-- First bytes of UTF-8 characters, their lengths, and the range of the second byte.
local CHARACTERS = {
  { 0xc2, 0xdf, 2, 0x80, 0xbf },
  { 0xe0, 0xe0, 3, 0xa0, 0xbf },
  { 0xe1, 0xec, 3, 0x80, 0xbf },
  { 0xed, 0xed, 3, 0x80, 0x9f },
  { 0xee, 0xef, 3, 0x80, 0xbf },
  { 0xf0, 0xf0, 4, 0x90, 0xbf },
  { 0xf1, 0xf3, 4, 0x80, 0xbf },
  { 0xf4, 0xf4, 4, 0x80, 0x8f },
}

-- The length of the character that begins here; nil if none does.
local function character_length(text, at)
  local first, second = string.byte(text, at, at + 1)
  if first < 0x80 then return 1 end
  for _, row in ipairs(CHARACTERS) do
    if row[1] <= first and first <= row[2] and second and row[4] <= second and second <= row[5] then
      local rest = string.match(text, '^[\128-\191]*', at + 2)
      return #rest >= row[3] - 2 and row[3] or nil
    end
  end
end

-- Replaces every byte that is not UTF-8 by a question mark, because JSON cannot contain it.
local function clean(text)
  if not string.find(text, '[\128-\255]') then return text end
  local parts, at = {}, 1
  while at <= #text do
    local length = character_length(text, at)
    parts[#parts + 1] = length and string.sub(text, at, at + length - 1) or '?'
    at = at + (length or 1)
  end
  return table.concat(parts)
end

-- The last lines of a text, each with a newline.
local function last_lines(text, most)
  local lines = {}
  for line in string.gmatch(text, '[^\n]*\n?') do
    if line ~= '' then lines[#lines + 1] = line end
  end
  local last = table.concat(lines, '', math.max(1, #lines - most + 1))
  if last ~= '' and string.sub(last, -1) ~= '\n' then last = last .. '\n' end
  return clean(last)
end

-- Commands on keys that other programs write as well. A failed one is counted and skipped, so that it does not affect
-- our own keys. Returns a function that runs a command, and one that returns the number of failures.
local function counted_calls()
  local failures = 0
  local function call(...)
    local answer = redis.pcall(...)
    if type(answer) == 'table' and answer.err then
      failures = failures + 1
      return nil
    end
    return answer
  end
  return call, function() return failures end
end
