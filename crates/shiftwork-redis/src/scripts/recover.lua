-- recover: takes claims from a dead pool, and removes it when it has none left; nothing if it has shown signs of life
-- KEYS    1 worker_pools, 2 the heartbeat, 3 beats, 4 dead; then jobs, in progress, lock and lock_info of each queue; then the
--         record of crashes of each claim ('dead' again for a job without an id)
-- ARGV    1 microseconds to add to the server's clock, 2 pool, 3 'heartbeat', 'none' or 'unregistered', 4 the heartbeat's time
--         as it was seen, 5 number of queues; then for each claim, within a queue the oldest first: number of its queue,
--         its bytes, its bytes for the dead set ('' to give it back), what to record
-- Returns {seconds, microseconds, 1 if the pool was as it had been seen, given back, buried, 1 if the pool is removed}

local call = redis.call
local now = call('TIME')
local micros = tonumber(now[1]) * 1000000 + tonumber(now[2]) + tonumber(ARGV[1])
local seconds = math.floor(micros / 1000000)
local stamp = string.format('%d', seconds)
local reply = {stamp, string.format('%d', micros - seconds * 1000000), 0, 0, 0, 0}

local pool, kind = ARGV[2], ARGV[3]
local registered = call('SISMEMBER', KEYS[1], pool) == 1
local beat = redis.pcall('HGET', KEYS[2], 'heartbeat_at')
if type(beat) ~= 'string' then
  beat = nil
end
if kind == 'heartbeat' then
  if not registered or beat ~= ARGV[4] then
    return reply
  end
elseif kind == 'none' then
  if not registered or beat then
    return reply
  end
else
  -- Our own set of beats is touched by no reaper of Go: a pool of Rust in it that has beaten lately may still claim.
  local last = tonumber(call('ZSCORE', KEYS[3], pool) or '') or -math.huge
  if registered or last + 10 > seconds or (beat and (tonumber(beat) or 0) + 30 > seconds) then
    return reply
  end
end
reply[3] = 1

local queues = tonumber(ARGV[5])
local crashes = 4 + queues * 4
local touched = {}
for index = (#ARGV - 5) / 4, 1, -1 do
  local at = 5 + (index - 1) * 4
  local queue = tonumber(ARGV[at + 1])
  local base = 4 + (queue - 1) * 4
  if redis.pcall('LREM', KEYS[base + 2], '-1', ARGV[at + 2]) == 1 then
    touched[queue] = true
    if ARGV[at + 3] == '' then
      call('RPUSH', KEYS[base + 1], ARGV[at + 2])
      reply[4] = reply[4] + 1
    else
      call('ZADD', KEYS[4], stamp, ARGV[at + 3])
      reply[5] = reply[5] + 1
    end
    local record = KEYS[crashes + index]
    if record ~= KEYS[4] then
      call('RPUSH', record, ARGV[at + 4])
      call('LTRIM', record, '-20', '-1')
      call('EXPIRE', record, '604800')
    end
  end
end

-- What is in progress is the truth; lock_info and lock follow from it.
local left = 0
for queue = 1, queues do
  local base = 4 + (queue - 1) * 4
  local held = redis.pcall('LLEN', KEYS[base + 2])
  if type(held) ~= 'number' then
    held = 0
  end
  left = left + held
  local info = redis.pcall('HGET', KEYS[base + 4], pool)
  if touched[queue] or (type(info) == 'string' and info ~= tostring(held)) then
    if held > 0 then
      call('HSET', KEYS[base + 4], pool, tostring(held))
    else
      redis.pcall('HDEL', KEYS[base + 4], pool)
    end
    local sum = 0
    for _, count in ipairs(call('HVALS', KEYS[base + 4])) do
      sum = sum + math.max(tonumber(count) or 0, 0)
    end
    call('SET', KEYS[base + 3], string.format('%d', sum))
  elseif info == '0' then
    call('HDEL', KEYS[base + 4], pool)
  end
end
if left == 0 then
  call('SREM', KEYS[1], pool)
  call('DEL', KEYS[2])
  call('ZREM', KEYS[3], pool)
  reply[6] = 1
end
return reply
