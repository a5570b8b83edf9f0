-- Compares records with the journal of a client, which may have missed notifications. Needs prelude.lua before it.
--
-- ARGV: namespace, the position of the client (see `check_position`), its seq, then as MessagePack kind, field and
-- version of each record. Returns the seq and the indexes of records with another version; or the
-- reason why requests are rejected.

local client, known, items = ARGV[2], tonumber(ARGV[3]), cmsgpack.unpack(ARGV[4])
-- Values for each record.
local RECORD = 3

-- After a rollback a missing record may have been lost.
local refused, seq, by = check_position(client, known)
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
-- The store has all commits of the client, which may not be a node that sends heartbeats. A server that rejects writes
-- still replies.
if by and #items > 0 then redis.pcall('HSET', META, by, string.format('%.0f', seq)) end
return answer
