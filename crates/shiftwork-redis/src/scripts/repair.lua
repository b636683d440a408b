-- repair: sets lock and lock_info of a queue to what is in progress
-- KEYS    1 lock, 2 lock_info; then in progress of each pool
-- ARGV    the pools; then for each '1' if it is registered
-- Returns 1 if a count was wrong

local call = redis.call
local wrong = 0
local pools = #KEYS - 2
if type(redis.pcall('HLEN', KEYS[2])) ~= 'number' then
  call('DEL', KEYS[2])
  wrong = 1
end
for index = 1, pools do
  local pool = ARGV[index]
  local held = redis.pcall('LLEN', KEYS[2 + index])
  if type(held) ~= 'number' then
    held = 0
  end
  local info = call('HGET', KEYS[2], pool)
  if (tonumber(info or '0') or -1) ~= held then
    wrong = 1
  end
  if held == 0 and ARGV[pools + index] ~= '1' then
    call('HDEL', KEYS[2], pool)
  elseif info ~= tostring(held) then
    call('HSET', KEYS[2], pool, tostring(held))
  end
end
local sum = 0
for _, count in ipairs(call('HVALS', KEYS[2])) do
  sum = sum + math.max(tonumber(count) or 0, 0)
end
local lock = redis.pcall('GET', KEYS[1])
if type(lock) ~= 'string' then
  lock = nil
end
if tonumber(lock or '0') ~= sum then
  call('SET', KEYS[1], string.format('%d', sum))
  wrong = 1
end
return wrong
