-- leave: removes a pool that has stopped, and its bookkeeping of claims that it no longer has
-- KEYS    1 worker_pools, 2 the heartbeat, 3 beats; then lock_info and in progress of each job type
-- ARGV    1 pool
-- Returns 1

redis.call('SREM', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2])
redis.call('ZREM', KEYS[3], ARGV[1])
for at = 4, #KEYS, 2 do
  -- A field that is not zero belongs to claims that are still there. A reaper finds them by it.
  if redis.pcall('LLEN', KEYS[at + 1]) == 0 and redis.pcall('HGET', KEYS[at], ARGV[1]) == '0' then
    redis.call('HDEL', KEYS[at], ARGV[1])
  end
end
return 1
