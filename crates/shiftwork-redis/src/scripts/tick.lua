-- tick: puts ticks of periodic jobs into the scheduled set, each once
-- KEYS    1 scheduled, 2 known_jobs; then for each tick its marker and the last tick of its schedule
-- ARGV    1 microseconds to add to the server's clock; then for each tick: second, '1' if it may be late, seconds to remember it
--         beyond its time, job type, job
-- Returns {seconds, microseconds, and for each tick 1 if it was new}

local call = redis.call
local now = call('TIME')
local micros = tonumber(now[1]) * 1000000 + tonumber(now[2]) + tonumber(ARGV[1])
local seconds = math.floor(micros / 1000000)
local reply = {string.format('%d', seconds), string.format('%d', micros - seconds * 1000000)}

for index = 1, (#KEYS - 2) / 2 do
  local marker, last = KEYS[1 + index * 2], KEYS[2 + index * 2]
  local at = 1 + (index - 1) * 5
  local due = tonumber(ARGV[at + 1])
  local new = 0
  if due > seconds or ARGV[at + 2] == '1' then
    local remember = string.format('%d', math.max(due - seconds, 0) + tonumber(ARGV[at + 3]))
    if call('SET', marker, '1', 'NX', 'EX', remember) then
      call('SADD', KEYS[2], ARGV[at + 4])
      call('ZADD', KEYS[1], ARGV[at + 1], ARGV[at + 5])
      if due > (tonumber(call('GET', last) or '') or -math.huge) then
        -- Longer than a year, so that what runs once a year can be caught up with.
        call('SET', last, ARGV[at + 1], 'EX', '34560000')
      end
      new = 1
    end
  end
  reply[2 + index] = new
end
return reply
