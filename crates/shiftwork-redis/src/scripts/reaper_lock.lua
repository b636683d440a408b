-- reaper_lock: takes, renews or frees the lock of the reapers, which Go's reapers respect
-- KEYS    1 reaper_lock
-- ARGV    1 token of the holder, 2 milliseconds to hold it, or '' to free it
-- Returns 1 if the token holds the lock now

local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return 0
end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
