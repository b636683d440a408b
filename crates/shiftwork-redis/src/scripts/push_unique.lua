-- push_unique: adds a job, unless its unique key is taken
-- KEYS    1 the unique key, 2 the queue or the scheduled set
-- ARGV    1 the job's id, 2 seconds for which the key lives, 3 the job, 4 the second at which it is due ('' for now)
-- Returns 1 if it was added, 0 if the key is taken

-- The target's type has to be right before the key is set: scripts do not roll back.
redis.call(ARGV[4] == '' and 'LLEN' or 'ZCARD', KEYS[2])
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EX', ARGV[2]) then
  return 0
end
if ARGV[4] == '' then
  redis.call('LPUSH', KEYS[2], ARGV[3])
else
  redis.call('ZADD', KEYS[2], ARGV[4], ARGV[3])
end
return 1
