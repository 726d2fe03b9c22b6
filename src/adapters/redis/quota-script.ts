/**
 * `transition` of core/quota.ts and what goes with it, on one hash, in one step: the words are there, and tests compare the two on
 * random traffic. Fields: m, c number and count of the minute; d, e of the day; s strikes and f first rejection (ms) of the minute;
 * b end of the ban (ms), l bans in a row, g version. What is 0 is not stored.
 *
 * KEYS[1] the hash. ARGV: 1 what to do; 2 Unix time in ms, 0 for the server's own; 3 phase; 4, 5 limits of minute and day; 6 grace ms;
 * 7 strikes to a ban; 8, 9 first and longest ban ms; 10 ms until bans are forgotten; 11 version; 12 whether it holds anyway;
 * 13, 14 windows of the report; 15 its strikes; 16, 17 its uses of minute and day.
 * Returns what became of it (1 charged or done, 0 refused, 2 outdated), the time, and the fields.
 */
export const QUOTA_SCRIPT = `
local key, op = KEYS[1], ARGV[1]
local a = {}
for i = 2, #ARGV do a[i] = tonumber(ARGV[i]) end
local now = a[2]
if now == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local stored = redis.call('HMGET', key, 'm', 'c', 'd', 'e', 's', 'f', 'b', 'l', 'g')
for i = 1, 9 do stored[i] = tonumber(stored[i] or 0) end
local m, c, d, e, s, f, b, l, g = unpack(stored)

-- A clock that stepped back over a window's start does not open that window twice.
local function window(known, byClock)
  if known == byClock + 1 then return known end
  return byClock
end
local seconds = math.floor(now / 1000)
local minute, day = window(m, math.floor((seconds + a[3]) / 60)), window(d, math.floor(seconds / 86400))
local opened = minute ~= m or day ~= d
if minute ~= m then m, c, s, f = minute, 0, 0, 0 end
if day ~= d then d, e = day, 0 end
if now >= b + a[10] then l = 0 end

local function strike(count)
  s = s + count
  if s < a[7] then return end
  b = now + math.min(a[8] * 2 ^ l, a[9])
  l, s, f = l + 1, 0, 0
end

local function save()
  local names, set, gone = { 'm', 'c', 'd', 'e', 's', 'f', 'b', 'l', 'g' }, {}, {}
  for i, value in ipairs({ m, c, d, e, s, f, b, l, g }) do
    if value ~= stored[i] then
      if value == 0 then
        gone[#gone + 1] = names[i]
      else
        set[#set + 1] = names[i]
        set[#set + 1] = string.format('%.0f', value)
      end
    end
  end
  if #set > 0 then redis.call('HSET', key, unpack(set)) end
  if #gone > 0 then redis.call('HDEL', key, unpack(gone)) end
  if opened or b ~= stored[7] then
    local forgettable = math.max((d + 1) * 86400000, (m + 1) * 60000)
    if l > 0 then forgettable = math.max(forgettable, b + a[10]) end
    -- A minute more than any replica remembers a record of a key: until then its version has to be known.
    redis.call('PEXPIRE', key, string.format('%.0f', math.max(forgettable - now, 60000)))
  end
end

local function reply(became)
  return { became, now, m, c, d, e, s, f, b, l, g }
end

if op == 'peek' then return reply(1) end

if op == 'unban' then
  local lifted = now < b
  if redis.call('EXISTS', key) == 1 then
    s, f, b, l = 0, 0, 0, 0
    save()
  end
  return reply(lifted and 1 or 0)
end

if op == 'announce' then
  g = math.max(g, a[11])
  redis.call('HSET', key, 'g', g)
  if redis.call('PTTL', key) < 60000 then redis.call('PEXPIRE', key, 60000) end
  return reply(1)
end

if op == 'take' and a[12] == 0 and a[11] < g then return reply(2) end

if a[13] == m then c = math.max(0, c + a[16]) end
if a[14] == d then e = math.max(0, e + a[17]) end
if a[13] == m and a[15] > 0 and now >= b then strike(a[15]) end

if op == 'reconcile' then
  save()
  return reply(1)
end

g = a[11]
if now < b then
  save()
  return reply(0)
end
if c >= a[4] or e >= a[5] then
  if f == 0 then f = now elseif now - f > a[6] then strike(1) end
  save()
  return reply(0)
end
c, e = c + 1, e + 1
save()
return reply(1)
`
