-- beat: writes a pool's heartbeat, if it is registered or asks to be
-- KEYS    1 worker_pools, 2 the heartbeat, 3 known_jobs, 4 beats, 5 looked; then max_concurrency of each job type; then in
--         progress of each job type
-- ARGV    1 pool, 2 '1' to register, 3 microseconds to add to the server's clock, 4 microseconds after which a look is due,
--         5 number of job types; then for each its name and its limit ('' for none); then fields and values of the
--         heartbeat, all but heartbeat_at
-- Returns {seconds, microseconds, 1 if the pool is registered, its claims, 1 if a look is due}

local call = redis.call
local now = call('TIME')
local micros = tonumber(now[1]) * 1000000 + tonumber(now[2]) + tonumber(ARGV[3])
local seconds = math.floor(micros / 1000000)
local stamp = string.format('%d', seconds)
local reply = {stamp, string.format('%d', micros - seconds * 1000000), 1, 0, 0}

local register = ARGV[2] == '1'
if not register and call('SISMEMBER', KEYS[1], ARGV[1]) == 0 then
  reply[3] = 0
  return reply
end
call('SADD', KEYS[1], ARGV[1])
call('ZADD', KEYS[4], stamp, ARGV[1])
local types = tonumber(ARGV[5])
for index = 1, types do
  local name, limit = ARGV[4 + index * 2], ARGV[5 + index * 2]
  call('SADD', KEYS[3], name)
  if limit ~= '' then
    if register then
      call('SET', KEYS[5 + index], limit)
    else
      call('SET', KEYS[5 + index], limit, 'NX')
    end
  end
  -- A list of the wrong type holds no claims.
  local held = redis.pcall('LLEN', KEYS[5 + types + index])
  if type(held) == 'number' then
    reply[4] = reply[4] + held
  end
end
call('HSET', KEYS[2], 'heartbeat_at', stamp, unpack(ARGV, 6 + types * 2))
local looked = tonumber(call('GET', KEYS[5]) or '')
if not looked or micros - looked >= tonumber(ARGV[4]) or micros < looked then
  reply[5] = 1
end
return reply
