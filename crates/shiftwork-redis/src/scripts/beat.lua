-- beat: writes a pool's heartbeat, if it is registered or asks to be
-- KEYS    1 worker_pools, 2 the heartbeat, 3 known_jobs; then max_concurrency of each job type
-- ARGV    1 pool, 2 '1' to register, 3 microseconds to add to the server's clock, 4 number of job types; then for each its
--         name and its limit ('' for none); then fields and values of the heartbeat, all but heartbeat_at
-- Returns {seconds, microseconds, 1 if the pool is registered}

local call = redis.call
local now = call('TIME')
local micros = tonumber(now[1]) * 1000000 + tonumber(now[2]) + tonumber(ARGV[3])
local seconds = math.floor(micros / 1000000)
local stamp = string.format('%d', seconds)
local reply = {stamp, string.format('%d', micros - seconds * 1000000), 1}

local register = ARGV[2] == '1'
if not register and call('SISMEMBER', KEYS[1], ARGV[1]) == 0 then
  reply[3] = 0
  return reply
end
call('SADD', KEYS[1], ARGV[1])
local types = tonumber(ARGV[4])
for index = 1, types do
  local name, limit = ARGV[3 + index * 2], ARGV[4 + index * 2]
  call('SADD', KEYS[3], name)
  if limit ~= '' then
    if register then
      call('SET', KEYS[3 + index], limit)
    else
      call('SET', KEYS[3 + index], limit, 'NX')
    end
  end
end
call('HSET', KEYS[2], 'heartbeat_at', stamp, unpack(ARGV, 5 + types * 2))
return reply
