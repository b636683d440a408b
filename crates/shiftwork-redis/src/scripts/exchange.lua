-- exchange: finishes claims of one pool and claims more, in one step
-- KEYS    1 retry, 2 scheduled, 3 dead; then six for each queue: jobs, in progress, lock, lock_info, paused, max_concurrency
-- ARGV    1 pool, 2 how many of the queues (the first ones) may be claimed from, 3 limit, 4 draw in [0, 1);
--         then a weight for each of those queues; then for each finish: index of its queue, destination (0 gone, or 1 to 3 of
--         KEYS), the claimed bytes, and unless it is gone: score, new bytes
-- Returns {seconds, microseconds, positions of lost finishes (from 0), {queue index, job, ...} for each queue that gave
--         jobs (oldest first), {queue index, reason} for each queue that can't be used}
--
-- Numbers go to redis.call as strings: Redis would format a Lua number with printf, which costs more than the call.

local call, pcall, floor, ceil = redis.call, redis.pcall, math.floor, math.ceil
local pool, claimable, limit, draw = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local finished, lost, claims, refused = {}, {}, {}, {}

local function failed(reply)
  return type(reply) == 'table' and reply.err
end

-- Finishes ---------------------------------------------------------------------------------------------------------

local at, position, checked = 5 + claimable, 0, {}
while at <= #ARGV do
  local destination = ARGV[at + 1]
  if destination ~= '0' and not checked[destination] then
    -- A set of the wrong type has to show before the first write: scripts do not roll back. What was written by then is only
    -- whole finishes, each of them complete, and repeating those does nothing.
    call('ZCARD', KEYS[tonumber(destination)])
    checked[destination] = true
  end
  at = at + (destination == '0' and 3 or 5)
end

at = 5 + claimable
while at <= #ARGV do
  local queue, destination = tonumber(ARGV[at]), ARGV[at + 1]
  -- A list of the wrong type holds no claim. From the old end on: what was claimed first mostly ends first.
  if pcall('LREM', KEYS[3 + (queue - 1) * 6 + 2], '-1', ARGV[at + 2]) == 1 then
    finished[queue] = (finished[queue] or 0) + 1
    if destination ~= '0' then
      call('ZADD', KEYS[tonumber(destination)], ARGV[at + 3], ARGV[at + 4])
    end
  else
    lost[#lost + 1] = position
  end
  position = position + 1
  at = at + (destination == '0' and 3 or 5)
end

-- Shares: systematic sampling, with the same sums as core's `allot` ----------------------------------------------------

local available, taken = {}, {}
if limit > 0 then
  -- Most queues are not paused and have no limit, so all are asked at once.
  local paused, limits = {}, {}
  for queue = 1, claimable do
    local key = 3 + (queue - 1) * 6
    paused[queue], limits[queue] = KEYS[key + 5], KEYS[key + 6]
  end
  local any_paused = call('EXISTS', unpack(paused)) > 0
  limits = call('MGET', unpack(limits))
  for queue = 1, claimable do
    local key = 3 + (queue - 1) * 6
    local jobs = pcall('LLEN', KEYS[key + 1])
    if failed(jobs) then
      refused[#refused + 1] = {queue, jobs.err}
      jobs = 0
    end
    if jobs > 0 and any_paused and call('EXISTS', KEYS[key + 5]) == 1 then
      jobs = 0
    end
    local max = limits[queue] and tonumber(limits[queue]) or 0
    if jobs > 0 and max > 0 then
      local lock = pcall('GET', KEYS[key + 3])
      lock = not failed(lock) and lock and tonumber(lock) or 0
      local room = max - (lock - (finished[queue] or 0))
      if room < jobs then
        jobs = room > 0 and room or 0
      end
    end
    available[queue], taken[queue] = jobs, 0
  end
  local left = limit
  while left > 0 do
    local total = 0
    for queue = 1, claimable do
      if available[queue] > taken[queue] then
        total = total + tonumber(ARGV[4 + queue])
      end
    end
    if total == 0 then
      break
    end
    local points, line, below = left, 0, 0
    for queue = 1, claimable do
      if available[queue] > taken[queue] then
        line = line + tonumber(ARGV[4 + queue])
        local upto = points
        if line < total then
          upto = ceil(line * points / total - draw)
          if upto < 0 then
            upto = 0
          end
        end
        local share = upto - below
        if share > available[queue] - taken[queue] then
          share = available[queue] - taken[queue]
        end
        below = upto
        taken[queue] = taken[queue] + share
        left = left - share
      end
    end
    local scattered = draw * 9973 + 0.5
    draw = scattered - floor(scattered)
  end
end

-- Bookkeeping and claims ------------------------------------------------------------------------------------------------

-- Adds to lock_info and lock alike, so that their sums stay equal; neither goes below 0. Returns an error, and then nothing
-- has changed.
local function count(key, number)
  if number == 0 then
    return nil
  end
  local info = pcall('HINCRBY', KEYS[key + 4], pool, tostring(number))
  if failed(info) then
    return info.err
  end
  if info < 0 then
    call('HSET', KEYS[key + 4], pool, '0')
    number = number - info
  end
  local lock = pcall('INCRBY', KEYS[key + 3], tostring(number))
  if failed(lock) then
    call('HINCRBY', KEYS[key + 4], pool, tostring(-number))
    return lock.err
  end
  return nil
end

for queue = 1, (#KEYS - 3) / 6 do
  local key = 3 + (queue - 1) * 6
  local take, done = taken[queue] or 0, finished[queue] or 0
  local problem = count(key, take - done)
  if problem and take > 0 then
    refused[#refused + 1] = {queue, problem}
    take = 0
    count(key, -done)
  end
  if take > 0 then
    local jobs = call('RPOP', KEYS[key + 1], tostring(take))
    local pushed = pcall('LPUSH', KEYS[key + 2], unpack(jobs))
    if failed(pushed) then
      for job = #jobs, 1, -1 do
        call('RPUSH', KEYS[key + 1], jobs[job])
      end
      count(key, -take)
      refused[#refused + 1] = {queue, pushed.err}
    else
      table.insert(jobs, 1, queue)
      claims[#claims + 1] = jobs
    end
  end
end

local now = call('TIME')
return {now[1], now[2], lost, claims, refused}
