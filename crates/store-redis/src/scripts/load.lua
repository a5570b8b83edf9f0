-- Reads records by key, as one snapshot. Needs prelude.lua, foreign.lua and held_locks.lua before it.
--
-- ARGV: namespace, then kind and field of each. Returns the value of each, false if it does not exist; for a lock its
-- token and the millisecond at which it expires, -1 if it does not expire; for a foreign run the result of
-- `foreign_run`.

local fields, found = {}, {}
for kind in pairs(TABLES) do fields[kind], found[kind] = {}, {} end

for index = 2, #ARGV, 2 do
  local wanted = fields[tonumber(ARGV[index])]
  if wanted then wanted[#wanted + 1] = ARGV[index + 1] end
end
for kind, wanted in pairs(fields) do read_fields(TABLES[kind], wanted, found[kind]) end

local answer = {}
for index = 2, #ARGV, 2 do
  local kind, field = tonumber(ARGV[index]), ARGV[index + 1]
  if kind == LOCK then
    answer[#answer + 1] = load_lock(field)
  elseif kind == FOREIGN then
    answer[#answer + 1] = foreign_run(ns, field) or false
  else
    answer[#answer + 1] = found[kind][field]
  end
end
return answer
