-- Reads some of all records of a kind. Needs prelude.lua and held_locks.lua before it.
--
-- ARGV: namespace, kind, the place where the walk continues, '' at the beginning, and about how many records. Returns the
-- place of the next call, '' at the end, then fields and values; for locks their names and the results of `load_lock`.
--
-- The order is that of the hash tables of one server process. Another one has another order, so a place names its process;
-- for a place of another process, returns false.

local kind, place, count = tonumber(ARGV[2]), ARGV[3], ARGV[4]
local owner, cursor = server, '0'
if place ~= '' then owner, cursor = string.match(place, '^(%w*) (%d+)$') end
if owner ~= server then return { false } end

local found = read('HSCAN', kind == LOCK and FENCES or TABLES[kind], cursor, 'COUNT', count)
local answer = { found[1] == '0' and '' or server .. ' ' .. found[1] }
for at = 1, #found[2], 2 do
  local field, value = found[2][at], found[2][at + 1]
  if kind == LOCK then value = load_lock(field) end
  if value then
    answer[#answer + 1] = field
    answer[#answer + 1] = value
  end
end
return answer
