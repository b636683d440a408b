-- seen: remembers since when pools show what they show, and forgets all other pools
-- KEYS    1 seen
-- ARGV    1 microseconds to add to the server's clock; then a pool and what it shows, for each
-- Returns {seconds, microseconds, and for each pool the second since which it shows this}

local call = redis.call
local now = call('TIME')
local micros = tonumber(now[1]) * 1000000 + tonumber(now[2]) + tonumber(ARGV[1])
local seconds = math.floor(micros / 1000000)
local stamp = string.format('%d', seconds)
local reply = {stamp, string.format('%d', micros - seconds * 1000000)}

local known = {}
local flat = call('HGETALL', KEYS[1])
for index = 1, #flat, 2 do
  known[flat[index]] = flat[index + 1]
end
call('DEL', KEYS[1])
for index = 2, #ARGV, 2 do
  local pool, shows = ARGV[index], ARGV[index + 1]
  local since, shown = string.match(known[pool] or '', '^(%-?%d+) (.*)$')
  if shown ~= shows or tonumber(since) > seconds then
    since = stamp
  end
  call('HSET', KEYS[1], pool, since .. ' ' .. shows)
  reply[#reply + 1] = since
end
if #ARGV > 1 then
  call('EXPIRE', KEYS[1], '86400')
end
return reply
