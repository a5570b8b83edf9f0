-- The latest run of a job on Cronken's nodes, read from Cronken's keys. Runs in `<ns>:cronhold:runs` are our own.
--
--   foreign_run(ns, job)      { version, id, host, start, '1' if it is running or '0' }, or nil
--   foreign_version(ns, job)  the version alone, or false
--
-- The version is 16 hex digits, a digest of the rest, because Cronken has no versions.

-- The numbers of newest results of each kind and of running runs that are scanned.
local FOREIGN_RESULTS = 10
local FOREIGN_ACTIVE = 1000

local function foreign_run(ns, job)
  local ids, seen = {}, {}
  local function look(key, most)
    local found = redis.pcall('ZRANGE', key, -most, -1)
    for _, id in ipairs(found.err and {} or found) do
      if not seen[id] then
        seen[id] = true
        ids[#ids + 1] = id
      end
    end
  end
  look(ns .. ':results:' .. job .. ':success', FOREIGN_RESULTS)
  look(ns .. ':results:' .. job .. ':fail', FOREIGN_RESULTS)
  look(ns .. ':rundata:active', FOREIGN_ACTIVE)
  if #ids == 0 then
    return nil
  end
  local texts = redis.pcall('HMGET', ns .. ':rundata', unpack(ids))
  if texts.err then
    return nil
  end
  -- Most texts belong to other jobs. Letters and digits at the end of a name are the same in any JSON encoding.
  local hint = string.match(job, '[%w_.-]*$') .. '"'
  local latest
  for index, id in ipairs(ids) do
    local text = texts[index] or ''
    local is_read, run = false, nil
    if string.find(text, hint, 1, true) then
      is_read, run = pcall(cjson.decode, text)
    end
    if is_read and type(run) == 'table' and run.job_name == job then
      local start = tonumber(run.start_time) or 0
      local is_later = not latest or start > latest.start
      if is_later and redis.call('HEXISTS', ns .. ':cronhold:runs', id) == 0 then
        local began, runs = tostring(run.start_time), run.status == 'running'
        latest = { id = id, host = tostring(run.host), start = start, began = began, runs = runs }
      end
    end
  end
  if not latest then
    return nil
  end
  local run = { latest.id, latest.host, latest.began, latest.runs and '1' or '0' }
  -- A version has 63 bits.
  table.insert(run, 1, '0' .. string.sub(redis.sha1hex(table.concat(run, '\0')), 1, 15))
  return run
end

local function foreign_version(ns, job)
  local run = foreign_run(ns, job)
  return run and run[1] or false
end
