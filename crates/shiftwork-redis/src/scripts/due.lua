-- due: reads the jobs of the scheduled and retry sets whose time has come
-- KEYS    1 scheduled, 2 retry
-- ARGV    1 how many at most, 2 microseconds to add to the server's clock
-- Returns {seconds, microseconds, due jobs of scheduled, due jobs of retry, the lowest score of each set or ''}

local now = redis.call('TIME')
local micros = tonumber(now[1]) * 1000000 + tonumber(now[2]) + tonumber(ARGV[2])
local seconds = math.floor(micros / 1000000)
local score = string.format('%d', seconds)
local limit, sets, lowest = tonumber(ARGV[1]), {{}, {}}, {'', ''}
for set = 1, 2 do
  if limit > 0 then
    sets[set] = redis.call('ZRANGEBYSCORE', KEYS[set], '-inf', score, 'LIMIT', '0', tostring(limit))
    limit = limit - #sets[set]
  end
  lowest[set] = redis.call('ZRANGE', KEYS[set], '0', '0', 'WITHSCORES')[2] or ''
end
return {score, string.format('%d', micros - seconds * 1000000), sets[1], sets[2], lowest[1], lowest[2]}
