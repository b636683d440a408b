-- look: finds pools that may have fallen silent, unless somebody has just looked
-- KEYS    1 worker_pools, 2 beats, 3 looked, 4 quiet, 5 seen, 6 audited
-- ARGV    1 microseconds to add to the server's clock, 2 microseconds in which nobody else may have looked, 3 seconds of
--         silence, 4 seconds that are a gap, 5 microseconds between two audits, 6 the most pools of one kind
-- Returns {seconds, microseconds, 1 if this call looked, number of pools, 1 if the audit is due, pools of Rust whose beats are
--         old, pools of others, pools of Rust that are not registered any more}

local call = redis.call
local now = call('TIME')
local micros = tonumber(now[1]) * 1000000 + tonumber(now[2]) + tonumber(ARGV[1])
local seconds = math.floor(micros / 1000000)
local stamp = string.format('%d', micros)
local reply = {
  string.format('%d', seconds), string.format('%d', micros - seconds * 1000000), 0, call('SCARD', KEYS[1]), 0, {}, {}, {},
}

-- A time in the future was written before the clock was set back.
local function age(key)
  local time = tonumber(call('GET', key) or '')
  if time and time <= micros then
    return micros - time
  end
  return math.huge
end

local since = age(KEYS[3])
if since < tonumber(ARGV[2]) then
  return reply
end
reply[3] = 1
call('SET', KEYS[3], stamp, 'EX', '86400')
local silence = tonumber(ARGV[3])
if since > tonumber(ARGV[4]) * 1000000 then
  -- Nobody could look: the server was away, or everybody was, or the clock was set. Let all show first that they live.
  call('SET', KEYS[4], string.format('%d', seconds + silence), 'EX', '86400')
  call('DEL', KEYS[5])
end
if age(KEYS[6]) >= tonumber(ARGV[5]) then
  call('SET', KEYS[6], stamp, 'EX', '86400')
  reply[5] = 1
end
-- Two sorted sets or sets, without those of the second; not more than one call can deal with.
local function difference(one, other)
  local pools = call('ZDIFF', '2', one, other)
  for index = #pools, tonumber(ARGV[6]) + 1, -1 do
    pools[index] = nil
  end
  return pools
end
reply[7] = difference(KEYS[1], KEYS[2])
-- Those that a reaper of Go has removed. One that has beaten lately may not have been told yet, and may still claim.
for _, pool in ipairs(difference(KEYS[2], KEYS[1])) do
  if tonumber(call('ZSCORE', KEYS[2], pool)) + silence <= seconds then
    reply[8][#reply[8] + 1] = pool
  end
end
local quiet = tonumber(call('GET', KEYS[4]) or '')
if not quiet or seconds >= quiet then
  local oldest = string.format('%d', seconds - silence)
  reply[6] = call('ZRANGEBYSCORE', KEYS[2], '-inf', oldest, 'LIMIT', '0', ARGV[6])
end
return reply
