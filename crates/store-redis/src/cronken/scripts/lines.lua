-- Outputs as lines, which Cronken's clients read at `<ns>:rundata:output:<run>`. The bytes are stored separately.
--
-- `<ns>:cronhold:lines` has for each run the number of bytes that are written as lines, and the number of lines. An
-- incomplete last line is written when the run ends, or when it becomes too long.
--
-- While a script runs, the server serves no other request, so each call writes a limited number of lines: the last ones
-- of what is new. A line with the number of omitted bytes replaces the others.

-- A longer line is split.
local LINE_MAX = 65536
-- The number of newest lines that are kept; the bytes are kept in full.
local LINES_SHOWN_MAX = 10000
-- The number of lines that one call writes at most, and the bytes in which it looks for them.
local LINES_A_CALL = 1000
local TEXT_MAX = 2 * LINE_MAX
-- Values of one command: `unpack` is limited to some thousands.
local VALUES_A_COMMAND = 1000

-- Splits a text into lines with their newlines. The last line counts as complete.
local function split_lines(text)
  local lines, from = {}, 1
  while from <= #text do
    local till = string.find(text, '\n', from, true) or #text
    for at = from, till, LINE_MAX do
      lines[#lines + 1] = string.sub(text, at, math.min(till, at + LINE_MAX - 1))
    end
    from = till + 1
  end
  return lines
end

-- Where the last `most` lines of a text begin. Looks at no other lines.
local function start_of_last(text, most)
  local reversed = string.reverse(text)
  local from = string.sub(text, -1) == '\n' and 2 or 1
  for _ = 1, most do
    local newline = string.find(reversed, '\n', from, true)
    if not newline then return 1 end
    from = newline + 1
  end
  return #text - from + 3
end

-- The line that replaces omitted bytes.
local function omission(bytes)
  local digits = string.reverse(string.format('%.0f', bytes))
  local grouped = string.gsub(string.reverse(string.gsub(digits, '(%d%d%d)', '%1,')), '^,', '')
  return '[… ' .. grouped .. ' bytes left out …]\n'
end

-- A number in spaces (0) and tabs (1), which makes equal lines different members.
local function blanks(number)
  local digits = {}
  repeat
    table.insert(digits, 1, number % 2 == 1 and '\t' or ' ')
    number = math.floor(number / 2)
  until number == 0
  return table.concat(digits)
end

-- Members of the sorted set for lines, of which the first has this number. A set holds each member once.
local function distinct(key, lines, number)
  local members, taken = {}, {}
  for index, line in ipairs(lines) do
    members[index] = string.gsub(line, '\n$', '')
  end
  local found = redis.call('ZMSCORE', key, unpack(members))
  for index, member in ipairs(members) do
    local is_taken = taken[member] or found[index]
    while is_taken do
      member = member .. blanks(number + index - 1)
      is_taken = taken[member] or redis.call('ZSCORE', key, member)
    end
    taken[member] = true
    members[index] = member
  end
  return members
end

local function add_to_set(key, lines, number, micros)
  local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
  -- Times rise strictly, so that lines of the same time keep their order.
  local at = math.max(micros, last and math.floor(last * 1e6 + 0.5) + 1 or 0)
  local values = {}
  for index, member in ipairs(distinct(key, lines, number)) do
    local time = at + index - 1
    values[2 * index - 1] = string.format('%.0f.%06.0f', math.floor(time / 1e6), time % 1e6)
    values[2 * index] = member
  end
  redis.call('ZADD', key, unpack(values))
end

local function add_lines(key, form, lines, number, micros)
  for from = 1, #lines, VALUES_A_COMMAND do
    local part = { unpack(lines, from, math.min(#lines, from + VALUES_A_COMMAND - 1)) }
    if form == 'list' then
      redis.call('RPUSH', key, unpack(part))
    else
      add_to_set(key, part, number + from - 1, micros)
    end
  end
  if number + #lines > LINES_SHOWN_MAX then
    if form == 'list' then
      redis.call('LTRIM', key, -LINES_SHOWN_MAX, -1)
    else
      redis.call('ZREMRANGEBYRANK', key, 0, -LINES_SHOWN_MAX - 1)
    end
  end
end

-- Writes the new part of an output: complete lines, or all of it if the run has ended, but only the last `most` lines.
-- `state` is the field in `lines`, if the caller has read it. Other programs may write the key, and it may have the
-- wrong type: callers use pcall.
local function show_output(ns, settings, run, length, has_ended, micros, most, state)
  state = state or redis.call('HGET', ns .. ':cronhold:lines', run)
  local shown, count = string.match(state or '', '^(%d+) (%d+)$')
  shown, count = tonumber(shown) or 0, tonumber(count) or 0
  if length <= shown then
    return
  end
  local from = math.max(shown, length - TEXT_MAX)
  local text = redis.call('GETRANGE', ns .. ':cronhold:output:' .. run, string.format('%.0f', from), -1)
  if not has_ended then
    -- Only what is complete: up to the last newline, and full pieces of a long line.
    local rest = #text - (string.match(text, '^.*\n()') or 1) + 1
    text = string.sub(text, 1, #text - rest % LINE_MAX)
  end
  if text == '' then
    return
  end
  local key = ns .. ':rundata:output:' .. run
  local first = start_of_last(text, most)
  local lines = split_lines(string.sub(text, first))
  local omitted = from - shown + first - 1
  if omitted > 0 then
    table.insert(lines, 1, omission(omitted))
  end
  add_lines(key, settings.form, lines, count + 1, micros)
  redis.call('EXPIRE', key, settings.output_ttl)
  redis.call('HSET', ns .. ':cronhold:lines', run, string.format('%.0f %.0f', from + #text, count + #lines))
end
