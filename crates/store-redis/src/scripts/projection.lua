-- Runs and pauses in Cronken's form, written in the same script as our own records. Needs texts.lua and
-- lines.lua before it.
--
--   local show = projection(ns, settings, time)  once a script: ARGV that `projection::settings` made, and redis TIME
--   show.run(id, class, owner, argument)         a run is written: `argument` is what `projection::argument` made;
--                                                `class` and `owner` are those of the header that it had before,
--                                                nil when it is new
--   show.gone(id, class, job)                    a run is deleted (by the header that it had); its output goes with it
--   show.pause(job, is_paused)                   a job_state is written, or deleted (false)
--   local failures = show.finish()               once, after the last unit
--
-- Everything is gathered and written by `finish`, a few commands for many runs. These keys are not ours alone, so a key
-- may be of a wrong type: such writes are left out and counted, and never keep our own records from being written.

-- The latest lines of an output are looked for in so many of its last bytes.
local TAIL_MAX = 65536

-- What `projection::settings` made, as a table.
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

-- Calls a command with as many of the values at a time as it can take; `before` stands before them.
local function call_in_parts(call, values, command, ...)
  for from = 1, #values, VALUES_A_COMMAND do
    local part = { command, ... }
    for index = from, math.min(#values, from + VALUES_A_COMMAND - 1) do
      part[#part + 1] = values[index]
    end
    call(unpack(part))
  end
end

-- Adds and removes members of a sorted set: `changes` has a score or false for each.
local function change_set(call, key, changes)
  local added, removed = {}, {}
  for member, score in pairs(changes) do
    if score then
      added[#added + 1] = score
      added[#added + 1] = member
    else
      removed[#removed + 1] = member
    end
  end
  call_in_parts(call, removed, 'ZREM', key)
  call_in_parts(call, added, 'ZADD', key)
end

-- Drops the oldest results that are too many, with their metadata. `grown` has for each set of a job that got something
-- new the general set beside it.
local function trim_results(call, ns, settings, grown)
  local general = {}
  for key, all in pairs(grown) do
    general[all] = true
    local old = call('ZRANGE', key, 0, -settings.job_results - 1) or {}
    if #old > 0 then
      call('ZREMRANGEBYRANK', key, 0, -settings.job_results - 1)
      call_in_parts(call, old, 'HDEL', ns .. ':rundata')
      call_in_parts(call, old, 'ZREM', all)
    end
  end
  for all in pairs(general) do
    call('ZREMRANGEBYRANK', all, 0, -settings.all_results - 1)
  end
end

local function projection(ns, settings_text, time)
  local settings = read_settings(settings_text)
  local now = time[1] * 1e6 + time[2]
  local failures = 0
  -- By run: its metadata, or false when it has none any more.
  local metadata = {}
  -- By run: the score of its heartbeat, or false.
  local active = {}
  -- By key of a sorted set of results: by run, its score or false.
  local results = {}
  -- By key of the results of a job that got something new: the general results beside them.
  local grown = {}
  -- Runs that have ended, with what is known of their ends.
  local ended = {}
  -- Runs that are no more, and jobs by whether they are paused.
  local dropped, paused = {}, {}

  -- A command on keys that are not ours alone.
  local function call(...)
    local answer = redis.pcall(...)
    if type(answer) == 'table' and answer.err then
      failures = failures + 1
      return nil
    end
    return answer
  end

  -- A result that is set or, without a score, unset.
  local function set_result(key, run, score)
    results[key] = results[key] or {}
    results[key][run] = score
  end

  -- Takes a run out of the results of a class.
  local function leave_results(run, class, job)
    local word = class == '1' and 'success' or 'fail'
    set_result(ns .. ':results:' .. word, run, false)
    set_result(ns .. ':results:' .. job .. ':' .. word, run, false)
  end

  -- Whether a run has results: it has ended, and had started before.
  local function has_results(class)
    return class == '1' or class == '2' or class == '3'
  end

  local function is_shown(class, owner)
    return has_results(class) or class == '0' and owner ~= nil and owner ~= '-'
  end

  -- Takes a run away.
  local function hide(id, class, job)
    metadata[id], active[id], ended[id] = false, false, nil
    if has_results(class) then leave_results(id, class, job) end
  end

  local show = {}

  function show.run(id, class, owner, argument)
    local kind, job, start, name, host, rest =
      string.match(argument, '^(.)([^%z]*)%z([^%z]*)%z([^%z]*)%z([^%z]*)%z(.*)$')
    if kind == '-' then
      -- It never started, or counts as if it had not.
      if is_shown(class, owner) then hide(id, class, job) end
    elseif kind == 'r' then
      if not is_shown(class, owner) then
        metadata[id] = '{"job_name":' .. name .. ',"start_time":"' .. seconds(now) .. '","host":' .. host
          .. ',"status":"running","retcode":null,"output":null,"duration":null}'
        active[id] = seconds(now)
      end
    else
      active[id] = false
      -- When it ended earlier in this script, nothing of that is written yet.
      local was = ended[id] and ended[id].was or class
      ended[id] = { kind = kind, job = job, start = start, name = name, host = host, rest = rest, was = was }
    end
  end

  function show.gone(id, class, job)
    hide(id, class, job)
    dropped[#dropped + 1] = id
  end

  function show.pause(job, is_paused)
    paused[job] = is_paused
  end

  -- The output's last lines as JSON, from its bytes.
  local function tail(id)
    local text = redis.call('GETRANGE', ns .. ':cronhold:output:' .. id, -TAIL_MAX, -1)
    return cjson.encode(last_lines(text, settings.lines))
  end

  -- Shows the end of one run. `before` is the metadata that it had.
  local function show_end(id, last, before)
    local place = before and string.find(before, ',"status":"', 1, true)
    local head = place and string.sub(before, 1, place - 1)
    local start = head and string.match(head, ',"start_time":"([%d.]+)"')
    local duration = place and string.match(before, ',"duration":([%d.]+)}$')
    local word = last.kind == 's' and 'success' or 'fail'
    local score = seconds(now)
    if has_results(last.was) then
      -- What has left the results long ago does not return to them.
      if not before then return end
      -- It was marked as something else, or got a note: it keeps its time.
      local old = last.was == '1' and 'success' or 'fail'
      score = call('ZSCORE', ns .. ':results:' .. last.job .. ':' .. old, id) or score
      if old ~= word then leave_results(id, last.was, last.job) end
    end
    if not start then
      -- Nothing is there that says when it began, so that our own record has to.
      start = last.start
      head = '{"job_name":' .. last.name .. ',"start_time":"' .. start .. '","host":' .. last.host
    end
    duration = duration or seconds(math.max(0, now - (micros_of(start) or now)))
    local said, rest = string.match(last.rest, '^(.)(.*)$')
    local output = said == 't' and ',"output":' .. tail(id) or ''
    metadata[id] = head .. rest .. output .. ',"duration":' .. duration .. '}'
    local general, own = ns .. ':results:' .. word, ns .. ':results:' .. last.job .. ':' .. word
    set_result(general, id, score)
    set_result(own, id, score)
    grown[own] = general
  end

  -- An unfinished last line is shown when the run ends.
  local function show_last_lines(ids)
    local lines = #ids > 0 and redis.call('HMGET', ns .. ':cronhold:lines', unpack(ids)) or {}
    for index, id in ipairs(ids) do
      local length = redis.call('STRLEN', ns .. ':cronhold:output:' .. id)
      local is_shown = pcall(show_output, ns, settings, id, length, true, now, lines[index] or '')
      if not is_shown then failures = failures + 1 end
    end
  end

  local function show_ends()
    local ids = {}
    for id in pairs(ended) do
      ids[#ids + 1] = id
    end
    for from = 1, #ids, VALUES_A_COMMAND do
      local part = { unpack(ids, from, math.min(#ids, from + VALUES_A_COMMAND - 1)) }
      local found = call('HMGET', ns .. ':rundata', unpack(part)) or {}
      local written = {}
      for index, id in ipairs(part) do
        show_end(id, ended[id], metadata[id] or found[index] or nil)
        if string.sub(ended[id].rest, 1, 1) ~= '-' then written[#written + 1] = id end
      end
      show_last_lines(written)
    end
  end

  local function write_metadata()
    local set, deleted = {}, {}
    for id, text in pairs(metadata) do
      if text then
        set[#set + 1] = id
        set[#set + 1] = text
      else
        deleted[#deleted + 1] = id
      end
    end
    call_in_parts(call, deleted, 'HDEL', ns .. ':rundata')
    call_in_parts(call, set, 'HSET', ns .. ':rundata')
  end

  local function write_pauses()
    local set, unset = {}, {}
    for job, is_paused in pairs(paused) do
      local list = is_paused and set or unset
      list[#list + 1] = job
    end
    call_in_parts(call, set, 'SADD', ns .. ':jobs:paused')
    call_in_parts(call, unset, 'SREM', ns .. ':jobs:paused')
  end

  local function drop_outputs()
    local keys = {}
    for _, id in ipairs(dropped) do
      keys[#keys + 1] = ns .. ':cronhold:output:' .. id
      keys[#keys + 1] = ns .. ':rundata:output:' .. id
    end
    call_in_parts(call, keys, 'DEL')
    call_in_parts(call, dropped, 'ZREM', ns .. ':cronhold:outputs')
    call_in_parts(call, dropped, 'HDEL', ns .. ':cronhold:lines')
  end

  function show.finish()
    show_ends()
    write_metadata()
    change_set(call, ns .. ':rundata:active', active)
    for key, changes in pairs(results) do
      change_set(call, key, changes)
    end
    trim_results(call, ns, settings, grown)
    write_pauses()
    drop_outputs()
    return failures
  end

  return show
end
