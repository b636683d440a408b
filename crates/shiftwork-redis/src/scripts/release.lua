-- release: gives claims of a pool back to the head of their queue
-- KEYS    1 jobs, 2 in progress, 3 lock, 4 lock_info
-- ARGV    1 pool; then the claimed bytes, the last one to run first
-- Returns how many were given back

local call = redis.call
call('LLEN', KEYS[1])
local released = 0
for index = 2, #ARGV do
  if call('LREM', KEYS[2], '-1', ARGV[index]) == 1 then
    call('RPUSH', KEYS[1], ARGV[index])
    released = released + 1
  end
end
if released > 0 then
  local number = released
  local info = call('HINCRBY', KEYS[4], ARGV[1], tostring(-number))
  if info < 0 then
    call('HSET', KEYS[4], ARGV[1], '0')
    number = number + info
  end
  call('DECRBY', KEYS[3], tostring(number))
end
return released
