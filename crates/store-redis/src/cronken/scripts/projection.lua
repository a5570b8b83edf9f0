-- Runs and pauses in Cronken's format, written in the same script as our own records. Needs texts.lua and lines.lua
-- before it.
--
--   local show = projection(ns, settings, time)  once per script: the result of `script_settings`, and TIME
--   show.run(id, job, class, is_owned, kind, output, text, rest, old_job)
--                                                a run is written: `kind`, `output` and the two texts are a
--                                                `Projection`; `class` and `is_owned` are from the old record, false
--                                                if it is new; `old_job` is the job in it, if that has another name
--   show.gone(id, class, job)                    a run of this class is deleted, with its output
--   show.pause(job, is_paused)                   a job_state is written, or deleted (false)
--   show.job(job, is_there)                      a job is written, or deleted (false)
--   show.pause_all(is_paused)                    the global pause is written
--   local failures = show.finish()               once, after the last unit
--
-- `finish` writes everything that was collected, with a few commands for many runs; each run occurs once. Other
-- programs write these keys too, so a key may have the wrong type: such writes are skipped and counted, and never
-- prevent writes of our own records.

local sub, find = string.sub, string.find

-- The last lines of an output are taken from this many of its last bytes.
local TAIL_MAX = 65536

-- Parses the result of `script_settings`.
local function read_settings(text)
  local form, job_results, all_results, lines, output_ttl, stale =
    string.match(text, '^(%a+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  return {
    form = form,
    job_results = tonumber(job_results),
    all_results = tonumber(all_results),
    lines = tonumber(lines),
    output_ttl = tonumber(output_ttl),
    stale_micros = tonumber(stale),
  }
end

-- Runs a command in parts of as many values as it can take, after `key`, if there is one.
local function call_in_parts(call, values, command, key)
  local count = #values
  for from = 1, count, VALUES_A_COMMAND do
    local till = math.min(count, from + VALUES_A_COMMAND - 1)
    if key then
      call(command, key, unpack(values, from, till))
    else
      call(command, unpack(values, from, till))
    end
  end
end

-- Redis stores a small sorted set as a listpack, and parses all scores to add one. A member that is too long for a
-- listpack converts the set to a skip list, which it stays when the member is removed.
local LONG_MEMBER = string.rep('-', 65)

local function begin_sorted(call, key) call('ZADD', key, 0, LONG_MEMBER) end
local function end_sorted(call, key) call('ZREM', key, LONG_MEMBER) end

-- The number of added values from which the conversion pays off.
local ACTIVE_MANY = 16

-- A set of results is converted early, and again from time to time while it is small: after a restart of the server it
-- is a listpack again.
local LIST_MAX, LIST_STEP = 128, 32

local function keep_sorted(call, key, count)
  if count > LIST_MAX or count % LIST_STEP ~= 1 then return end
  begin_sorted(call, key)
  end_sorted(call, key)
end

-- Deletes the oldest results above the limits, with their metadata. `grown` maps each changed set of a job to the
-- general set.
local function trim_results(call, ns, settings, grown)
  local dropped, by_general = {}, {}
  for key, general in pairs(grown) do
    local of_general = by_general[general] or {}
    by_general[general] = of_general
    local count = call('ZCARD', key) or 0
    keep_sorted(call, key, count)
    if count > settings.job_results then
      local old = call('ZPOPMIN', key, count - settings.job_results) or {}
      for at = 1, #old, 2 do
        dropped[#dropped + 1] = old[at]
        of_general[#of_general + 1] = old[at]
      end
    end
  end
  call_in_parts(call, dropped, 'HDEL', ns .. ':rundata')
  for general, old in pairs(by_general) do
    call_in_parts(call, old, 'ZREM', general)
    call('ZREMRANGEBYRANK', general, 0, -settings.all_results - 1)
  end
end

local function projection(ns, settings_text, time)
  local settings = read_settings(settings_text)
  local now = time[1] * 1e6 + time[2]
  local now_text = seconds(now)
  local RUNDATA, RESULTS, OUTPUT = ns .. ':rundata', ns .. ':results:', ns .. ':cronhold:output:'
  -- Outputs whose last line could not be written.
  local unshown = 0
  -- Runs with their metadata, and runs whose metadata are deleted.
  local metadata, metadata_count, no_metadata = {}, 0, {}
  -- Heartbeats with their runs, and runs that are no longer running.
  local active, active_count, inactive, inactive_count = {}, 0, {}, 0
  -- By key of general results: added scores and runs. By key of any results: removed runs.
  local results, no_results = {}, {}
  -- By key of changed results of a job: the general results.
  local grown = {}
  -- Runs that have ended and have an output.
  local with_output = {}
  -- Deleted runs; jobs that are paused and not paused, that exist and do not exist; and the new global pause, if it
  -- changes.
  local dropped, paused, unpaused, jobs, no_jobs, all = {}, {}, {}, {}, {}, nil

  local call, failed = counted_calls()

  local function list_of(lists, key)
    local list = lists[key]
    if not list then
      list = {}
      lists[key] = list
    end
    return list
  end

  local function add_result(key, id, score)
    local list = list_of(results, key)
    local count = #list
    list[count + 1], list[count + 2] = score, id
  end

  -- Removes a run from the results of a class.
  local function leave_results(id, class, job)
    local word = class == '1' and 'success' or 'fail'
    table.insert(list_of(no_results, RESULTS .. word), id)
    table.insert(list_of(no_results, RESULTS .. job .. ':' .. word), id)
  end

  -- Whether a run has a result: it has ended, and its program was started.
  local function has_results(class) return class == '1' or class == '2' or class == '3' end

  local function rest(id)
    inactive_count = inactive_count + 1
    inactive[inactive_count] = id
  end

  -- Removes a run.
  local function hide(id, class, job)
    no_metadata[#no_metadata + 1] = id
    rest(id)
    if has_results(class) then leave_results(id, class, job) end
  end

  local function write(id, text)
    metadata[metadata_count + 1], metadata[metadata_count + 2] = id, text
    metadata_count = metadata_count + 2
  end

  local show = {}

  -- The last lines of the output as JSON, from its bytes.
  local function tail(id)
    local text = redis.call('GETRANGE', OUTPUT .. id, -TAIL_MAX, -1)
    return cjson.encode(last_lines(text, settings.lines))
  end

  -- Writes the result of a run.
  local function end_run(id, job, class, kind, output, text, rest_text, old_job)
    local word, score = kind == 's' and 'success' or 'fail', now_text
    rest(id)
    if has_results(class) then
      -- Its state, a note or the name of its job was changed later. A run that retention has removed from the results is not added again;
      -- another one keeps its time.
      if call('HEXISTS', RUNDATA, id) ~= 1 then return end
      local old = class == '1' and 'success' or 'fail'
      score = call('ZSCORE', RESULTS .. (old_job or job) .. ':' .. old, id) or score
      if old ~= word or old_job then leave_results(id, class, old_job or job) end
    end
    if output ~= '-' then with_output[#with_output + 1] = id end
    if output == 't' then text = text .. tail(id) .. rest_text end
    write(id, text)
    local general, own = RESULTS .. word, RESULTS .. job .. ':' .. word
    add_result(general, id, score)
    add_result(own, id, score)
    grown[own] = general
  end

  function show.run(id, job, class, is_owned, kind, output, text, rest_text, old_job)
    if kind == 's' or kind == 'f' then return end_run(id, job, class, kind, output, text, rest_text, old_job) end
    local is_shown = is_owned or has_results(class)
    if kind == 'r' and not is_shown then
      write(id, text)
      active[active_count + 1], active[active_count + 2] = now_text, id
      active_count = active_count + 2
    elseif kind == '-' and is_shown then
      -- Its program never started, or counts as not started.
      hide(id, class, old_job or job)
    end
  end

  function show.gone(id, class, job)
    hide(id, class, job)
    dropped[#dropped + 1] = id
  end

  function show.pause(job, is_paused)
    local list = is_paused and paused or unpaused
    list[#list + 1] = job
  end

  function show.job(job, is_there)
    local list = is_there and jobs or no_jobs
    list[#list + 1] = job
  end

  function show.pause_all(is_paused) all = is_paused end

  -- An incomplete last line is written when the run ends.
  local function show_last_lines()
    for from = 1, #with_output, VALUES_A_COMMAND do
      local ids = { unpack(with_output, from, math.min(#with_output, from + VALUES_A_COMMAND - 1)) }
      local lines = redis.call('HMGET', ns .. ':cronhold:lines', unpack(ids))
      for index, id in ipairs(ids) do
        local length = redis.call('STRLEN', OUTPUT .. id)
        local is_shown = pcall(show_output, ns, settings, id, length, true, now, LINES_A_CALL, lines[index] or '')
        if not is_shown then unshown = unshown + 1 end
      end
    end
  end

  local function add_active()
    local key = RUNDATA .. ':active'
    local is_many = active_count >= ACTIVE_MANY
    if is_many then begin_sorted(call, key) end
    call_in_parts(call, active, 'ZADD', key)
    if is_many then end_sorted(call, key) end
  end

  -- Whether everything is paused, from our own record.
  local function is_held()
    local value = redis.call('HGET', ns .. ':cronhold:pause', 'all')
    if not value then return false end
    local is_read, record = pcall(cjson.decode, sub(value, find(value, '\n', 1, true) + 1))
    return is_read and type(record) == 'table' and type(record.current) == 'table'
  end

  -- Cronken has no global pause: while everything is paused, each job is. Jobs that are paused themselves are stored
  -- separately, for when the global pause ends.
  local function write_pauses()
    local shown, own = ns .. ':jobs:paused', ns .. ':cronhold:paused'
    for _, key in ipairs({ own, shown }) do call_in_parts(call, paused, 'SADD', key) end
    -- Usually nothing is paused, and every end of a run writes a job_state.
    local lifted = #unpaused + #no_jobs > 0 and (call('EXISTS', shown, own) or 0) > 0
    if not lifted and #jobs == 0 and all == nil then return end
    local held = is_held()
    if lifted then
      call_in_parts(call, unpaused, 'SREM', own)
      if not held then call_in_parts(call, unpaused, 'SREM', shown) end
      for _, key in ipairs({ own, shown }) do call_in_parts(call, no_jobs, 'SREM', key) end
    end
    if held then
      call_in_parts(call, all and redis.call('ZRANGE', ns .. ':cronhold:index:jobs', 0, -1) or jobs, 'SADD', shown)
    elseif all == false then
      call('SUNIONSTORE', shown, own)
    end
  end

  local function drop_outputs()
    if #dropped == 0 then return end
    local keys, with_bytes, counted = {}, false, ns .. ':cronhold:output_bytes'
    for _, id in ipairs(dropped) do
      keys[#keys + 1] = OUTPUT .. id
      keys[#keys + 1] = ns .. ':rundata:output:' .. id
    end
    local function leave_index(...) with_bytes = (call(...) or 0) > 0 or with_bytes end
    call_in_parts(leave_index, dropped, 'ZREM', ns .. ':cronhold:outputs')
    -- Most deleted runs have no output any more.
    if with_bytes and call('EXISTS', counted) == 1 then
      local bytes = 0
      for _, id in ipairs(dropped) do bytes = bytes + (call('STRLEN', OUTPUT .. id) or 0) end
      if bytes > 0 then call('DECRBY', counted, bytes) end
    end
    -- Another thread of the server frees them: an output may have many lines.
    call_in_parts(call, keys, 'UNLINK')
    call_in_parts(call, dropped, 'HDEL', ns .. ':cronhold:lines')
  end

  function show.finish()
    show_last_lines()
    call_in_parts(call, no_metadata, 'HDEL', RUNDATA)
    call_in_parts(call, metadata, 'HSET', RUNDATA)
    call_in_parts(call, inactive, 'ZREM', RUNDATA .. ':active')
    add_active()
    for key, runs in pairs(no_results) do call_in_parts(call, runs, 'ZREM', key) end
    for key, values in pairs(results) do call_in_parts(call, values, 'ZADD', key) end
    trim_results(call, ns, settings, grown)
    write_pauses()
    drop_outputs()
    return failed() + unshown
  end

  return show
end
