-- promote: moves due jobs to their queues, exact bytes for exact bytes
-- KEYS    1 scheduled, 2 retry, 3 dead, 4 known_jobs; then the queues
-- ARGV    1 now; then for each job: set it is in (1 or 2), its bytes, index of its queue among KEYS (0 for the dead set), name
--         of the queue, new bytes
-- Returns {moved, buried, the lowest score left in each set or ''}
--
-- Several pools may have read the same jobs: whoever removes a job from its set is the one who moves it.

local call, moved, buried = redis.call, 0, 0
call('ZCARD', KEYS[3])
for at = 2, #ARGV, 5 do
  local queue = tonumber(ARGV[at + 2])
  local usable = queue == 0
  if queue > 0 then
    local length = redis.pcall('LLEN', KEYS[queue])
    usable = type(length) == 'number'
  end
  -- A job whose queue can't take it stays where it is; it is not lost, and does not hold up the others.
  if usable and call('ZREM', KEYS[tonumber(ARGV[at])], ARGV[at + 1]) == 1 then
    if queue > 0 then
      call('LPUSH', KEYS[queue], ARGV[at + 4])
      redis.pcall('SADD', KEYS[4], ARGV[at + 3])
      moved = moved + 1
    else
      call('ZADD', KEYS[3], ARGV[1], ARGV[at + 4])
      buried = buried + 1
    end
  end
end
local scheduled = call('ZRANGE', KEYS[1], '0', '0', 'WITHSCORES')[2] or ''
local retry = call('ZRANGE', KEYS[2], '0', '0', 'WITHSCORES')[2] or ''
return {moved, buried, scheduled, retry}
