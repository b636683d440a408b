-- start: frees unique keys of jobs that start, if they are still theirs
-- KEYS    the unique keys
-- ARGV    for each key the id of the job that starts
-- Returns how many were freed
--
-- The Go library sets '1', which names no owner, and frees the key whoever has set it since.

local freed = 0
for index, key in ipairs(KEYS) do
  local owner = redis.pcall('GET', key)
  if owner == ARGV[index] or owner == '1' then
    freed = freed + redis.call('DEL', key)
  end
end
return freed
