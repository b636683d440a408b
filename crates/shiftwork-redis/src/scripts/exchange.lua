-- exchange: finishes claims of one pool and claims more, in one step
-- KEYS    1 retry, 2 scheduled, 3 dead; then six for each queue: jobs, in progress, lock, lock_info, paused, max_concurrency
-- ARGV    1 pool, 2 how many of the queues (the first ones) may be claimed from, 3 limit, 4 draw in [0, 1), 5 how many moves;
--         then a weight for each of those queues; then for each move: position of its finish (from 0), 1 to 3 of KEYS where
--         the job goes, score, new bytes; then for each queue of which claims end: its index, how many, their bytes
-- Returns {seconds, microseconds, positions of lost finishes (from 0), queue index and {job, ...} in turn for what was
--         claimed (oldest first), {queue index, reason} for each queue that can't be used}
--
-- This is the hot path: there are as few calls as can be, and hardly any tables, which cost more than calls. Numbers go to
-- redis.call as strings: Redis would format a Lua number with printf.

local call, pcall, floor, ceil = redis.call, redis.pcall, math.floor, math.ceil
local pool, claimable, limit, draw = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local finished, lost, claims, refused = {}, {}, {}, {}

local function failed(reply)
  return type(reply) == 'table' and reply.err
end

-- Finishes ---------------------------------------------------------------------------------------------------------

-- Whether a list ends with just these jobs, whatever their order: ARGV `first` to `last`. What was claimed first mostly ends
-- first, and then one call takes all of them away.
local function are_oldest(list, first, last)
  local oldest = pcall('LRANGE', list, tostring(first - last - 1), '-1')
  if failed(oldest) or #oldest ~= last - first + 1 then
    return false
  end
  local wanted = {}
  for at = first, last do
    wanted[ARGV[at]] = (wanted[ARGV[at]] or 0) + 1
  end
  for _, job in ipairs(oldest) do
    local left = wanted[job]
    if not left or left == 0 then
      return false
    end
    wanted[job] = left - 1
  end
  return true
end

local moves = tonumber(ARGV[5])
local first_move = 6 + claimable
for move = first_move, first_move + (moves - 1) * 4, 4 do
  -- A set of the wrong type has to show before the first write: scripts do not roll back.
  call('ZCARD', KEYS[tonumber(ARGV[move + 1])])
end

local at, position, is_lost = first_move + moves * 4, 0, nil
while at <= #ARGV do
  local queue, number = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  local list, first, last = KEYS[queue * 6 - 1], at + 2, at + 1 + number
  -- Long jobs are not worth the copy.
  if number > 8 and #ARGV[first] < 4096 and are_oldest(list, first, last) then
    call('LTRIM', list, '0', tostring(-number - 1))
    finished[queue] = number
    position = position + number
  else
    local done = 0
    for job = first, last do
      -- A list of the wrong type holds no claim.
      if pcall('LREM', list, '-1', ARGV[job]) == 1 then
        done = done + 1
      else
        lost[#lost + 1] = position
        is_lost = is_lost or {}
        is_lost[position] = true
      end
      position = position + 1
    end
    finished[queue] = done
  end
  at = last + 1
end

for move = first_move, first_move + (moves - 1) * 4, 4 do
  if not (is_lost and is_lost[tonumber(ARGV[move])]) then
    call('ZADD', KEYS[tonumber(ARGV[move + 1])], ARGV[move + 2], ARGV[move + 3])
  end
end

-- Bookkeeping and claims --------------------------------------------------------------------------------------------

-- Adds to lock_info and lock alike, so that their sums stay equal; neither goes below 0. Returns an error, and then nothing
-- has changed.
local function count(queue, number)
  local lock, info = KEYS[queue * 6], KEYS[queue * 6 + 1]
  local sum = pcall('HINCRBY', info, pool, tostring(number))
  if failed(sum) then
    return sum.err
  end
  if sum < 0 then
    call('HSET', info, pool, '0')
    number = number - sum
  end
  local locked = pcall('INCRBY', lock, tostring(number))
  if failed(locked) then
    call('HINCRBY', info, pool, tostring(-number))
    return locked.err
  end
  return nil
end

-- Moves up to so many jobs of a queue to those in progress. Returns them, or nil if there are none, and an error, after which
-- nothing has moved.
local function move_to_progress(queue, number)
  local from, to = KEYS[queue * 6 - 2], KEYS[queue * 6 - 1]
  if number == 1 then
    local job = pcall('LMOVE', from, to, 'RIGHT', 'LEFT')
    if failed(job) then
      return nil, job.err
    end
    return job and {job}
  end
  local jobs = pcall('RPOP', from, tostring(number))
  if failed(jobs) then
    return nil, jobs.err
  end
  if jobs then
    local pushed = pcall('LPUSH', to, unpack(jobs))
    if failed(pushed) then
      for job = #jobs, 1, -1 do
        call('RPUSH', from, jobs[job])
      end
      return nil, pushed.err
    end
  end
  return jobs
end

-- Claims up to so many jobs of a queue, and counts them together with what has ended of it. Returns how many.
local unusable = {}
local function claim(queue, number)
  local done = finished[queue] or 0
  local problem = number ~= done and count(queue, number - done)
  finished[queue] = nil
  local jobs
  if problem then
    if done > 0 then
      count(queue, -done)
    end
  else
    jobs, problem = move_to_progress(queue, number)
    local got = jobs and #jobs or 0
    if got < number then
      count(queue, got - number)
    end
    if got > 0 then
      claims[#claims + 1] = queue
      claims[#claims + 1] = jobs
      return got
    end
  end
  if problem then
    refused[#refused + 1], unusable[queue] = {queue, problem}, true
  end
  return 0
end

-- Of one kind of keys those of the queues `first` to `last`.
local function keys_of(offset, first, last)
  local keys = {}
  for queue = first, last do
    keys[queue - first + 1] = KEYS[queue * 6 + offset]
  end
  return unpack(keys)
end

-- Shares: systematic sampling, with the same sums as core's `allot`. One round lays `points` over the queues of which
-- `available` says that they have something (all of them, if it is nil), and returns each one's share.
local weights = {}
local function shares_of(points, available)
  local total, shares, line, below = 0, {}, 0, 0
  for queue = 1, claimable do
    if not available or available[queue] > 0 then
      total = total + weights[queue]
    end
  end
  if total == 0 then
    return nil
  end
  for queue = 1, claimable do
    if not available or available[queue] > 0 then
      line = line + weights[queue]
      local upto = points
      if line < total then
        upto = ceil(line * points / total - draw)
        if upto < 0 then
          upto = 0
        end
      end
      local share = upto - below
      below = upto
      if available and share > available[queue] then
        share = available[queue]
      end
      shares[queue] = share
    end
  end
  local scattered = draw * 9973 + 0.5
  draw = scattered - floor(scattered)
  return shares
end

if limit > 0 and claimable > 0 then
  -- Most queues have jobs, are not paused and have no limit, so all are asked at once, a thousand in a call.
  local paused, there, limits = 0, 0, nil
  for first = 1, claimable, 1000 do
    local last = first + 999 < claimable and first + 999 or claimable
    paused = paused + call('EXISTS', keys_of(2, first, last))
    there = there + call('EXISTS', keys_of(-2, first, last))
    for index, max in ipairs(call('MGET', keys_of(3, first, last))) do
      max = max and tonumber(max) or 0
      if max > 0 then
        limits = limits or {}
        limits[first + index - 1] = max
      end
    end
  end
  for queue = 1, claimable do
    weights[queue] = tonumber(ARGV[5 + queue])
  end

  local left = limit
  if paused == 0 and not limits and there == claimable then
    -- None is empty, so nobody needs to know how long they are, unless one turns out to be shorter than its share.
    for queue, share in ipairs(shares_of(limit) or {}) do
      if share > 0 then
        left = left - claim(queue, share)
      end
    end
  end

  if left > 0 then
    local available, taken = {}, {}
    for queue = 1, claimable do
      local jobs = unusable[queue] and 0 or pcall('LLEN', KEYS[queue * 6 - 2])
      if failed(jobs) then
        refused[#refused + 1] = {queue, jobs.err}
        jobs = 0
      end
      if jobs > 0 and paused > 0 and call('EXISTS', KEYS[queue * 6 + 2]) == 1 then
        jobs = 0
      end
      local max = limits and limits[queue]
      if jobs > 0 and max then
        local lock = pcall('GET', KEYS[queue * 6])
        lock = not failed(lock) and lock and tonumber(lock) or 0
        local room = max - (lock - (finished[queue] or 0))
        if room < jobs then
          jobs = room > 0 and room or 0
        end
      end
      available[queue], taken[queue] = jobs, 0
    end
    while left > 0 do
      local shares = shares_of(left, available)
      if not shares then
        break
      end
      for queue, share in pairs(shares) do
        taken[queue], available[queue] = taken[queue] + share, available[queue] - share
        left = left - share
      end
    end
    for queue = 1, claimable do
      if taken[queue] > 0 then
        claim(queue, taken[queue])
      end
    end
  end
end

for queue, done in pairs(finished) do
  if done > 0 then
    count(queue, -done)
  end
end

local now = call('TIME')
return {now[1], now[2], lost, claims, refused}
