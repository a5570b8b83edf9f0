-- Whether records are still as a client remembers them: hints that said otherwise may have been lost. Needs prelude.lua
-- before it.
--
-- ARGV: namespace, what the client knows (see `standing`), the seq that it knows, then as MessagePack kind, field and
-- version of each record, '' for one that was deleted. Answers with the seq and the places of those that are not as
-- remembered; or with what stands in the way.

local client, known, items = ARGV[2], tonumber(ARGV[3]), cmsgpack.unpack(ARGV[4])
-- Values that there are for each record.
local RECORD = 3

-- In a store that has gone back, or is being healed, what is missing may have been lost.
local refused, seq, by = standing(client, known)
if refused then return refused end

local fields, found = {}, {}
for kind in pairs(TABLES) do fields[kind], found[kind] = {}, {} end
for at = 1, #items, RECORD do
  local of_kind = fields[items[at]]
  of_kind[#of_kind + 1] = items[at + 1]
end
for kind, key in pairs(TABLES) do read_fields(key, fields[kind], found[kind]) end

local answer = { seq }
for at = 1, #items, RECORD do
  local value = found[items[at]][items[at + 1]]
  if (value and sub(value, 1, 16) or '') ~= items[at + 2] then answer[#answer + 1] = (at - 1) / RECORD end
end
-- Everything that the client has committed is there. Clients that say so are not taken for those of long ago. A server that
-- takes no writes answers all the same.
if by and #items > 0 then redis.pcall('HSET', META, by, string.format('%.0f', seq)) end
return answer
