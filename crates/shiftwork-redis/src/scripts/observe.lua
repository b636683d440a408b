-- observe: writes what workers run
-- KEYS    the record of each worker
-- ARGV    for each worker: job type ('' if it runs none), job id, started_at, args, checkin, checkin_at ('' if it said nothing)
-- Returns 1

local call = redis.call
for index, key in ipairs(KEYS) do
  local at = (index - 1) * 6
  -- Whole each time: nothing of the last job may stay.
  call('DEL', key)
  if ARGV[at + 1] ~= '' then
    call('HSET', key, 'job_name', ARGV[at + 1], 'job_id', ARGV[at + 2], 'started_at', ARGV[at + 3], 'args', ARGV[at + 4])
    if ARGV[at + 6] ~= '' then
      call('HSET', key, 'checkin', ARGV[at + 5], 'checkin_at', ARGV[at + 6])
    end
    call('EXPIRE', key, '86400')
  end
end
return 1
