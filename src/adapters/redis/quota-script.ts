/** The fields of a key's hash. Do not change these letters: deployed data depends on them. A value of 0 is not stored. */
export const FIELDS = {
  minute: 'm',
  minuteUsed: 'c',
  day: 'd',
  dayUsed: 'e',
  strikes: 's',
  firstRejectionMs: 'f',
  bannedUntilMs: 'b',
  banLevel: 'l',
  keyVersion: 'g',
} as const

/** The first number of a reply. */
export const OUTCOMES = { rejected: 0, done: 1, stale: 2 } as const

const NAMES = Object.keys(FIELDS).join(', ')
const LETTERS = `'${Object.values(FIELDS).join("', '")}'`

/**
 * Implements `transition`, `reconcile`, `unban` and the key version of core/quota.ts on one hash. Each operation is one atomic step.
 * core/quota.ts documents the rules, and tests compare the two on random traffic.
 *
 * KEYS[1] is the hash, and ARGV[1] the `ScriptArguments` as JSON.
 * Returns the outcome, the time in milliseconds and the values of all FIELDS.
 */
export const QUOTA_SCRIPT = `
local key, args = KEYS[1], cjson.decode(ARGV[1])
local operation, rules, delta = args.operation, args.rules, args.delta
local forgetAfterMs = rules and rules.ban.forgetAfterMs or 0

local now = args.nowMs
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local stored = redis.call('HMGET', key, ${LETTERS})
for index, value in ipairs(stored) do stored[index] = tonumber(value or 0) end
local ${NAMES} = unpack(stored)
local storedBannedUntilMs = bannedUntilMs

-- If the clock steps back to before the start of a window, that window must not start again.
local function currentWindow(known, byClock)
  if known == byClock + 1 then return known end
  return byClock
end
local seconds = math.floor(now / 1000)
local minuteNow = currentWindow(minute, math.floor((seconds + args.phaseSeconds) / 60))
local dayNow = currentWindow(day, math.floor(seconds / 86400))
local isNewWindow = minuteNow ~= minute or dayNow ~= day
if minuteNow ~= minute then minute, minuteUsed, strikes, firstRejectionMs = minuteNow, 0, 0, 0 end
if dayNow ~= day then day, dayUsed = dayNow, 0 end
if now >= bannedUntilMs + forgetAfterMs then banLevel = 0 end

local function isBanned()
  return now < bannedUntilMs
end

local function addStrikes(count)
  strikes = strikes + count
  if strikes < args.strikesToBan then return end
  bannedUntilMs = now + math.min(rules.ban.firstMs * 2 ^ banLevel, rules.ban.longestMs)
  banLevel, strikes, firstRejectionMs = banLevel + 1, 0, 0
end

local function save()
  local letters, set, unset = { ${LETTERS} }, {}, {}
  for index, value in ipairs({ ${NAMES} }) do
    if value ~= stored[index] and value == 0 then
      unset[#unset + 1] = letters[index]
    elseif value ~= stored[index] then
      set[#set + 1] = letters[index]
      set[#set + 1] = string.format('%.0f', value)
    end
  end
  if #set > 0 then redis.call('HSET', key, unpack(set)) end
  if #unset > 0 then redis.call('HDEL', key, unpack(unset)) end
  if not isNewWindow and bannedUntilMs == storedBannedUntilMs then return end
  local expiresAt = math.max((day + 1) * 86400000, (minute + 1) * 60000)
  if banLevel > 0 then expiresAt = math.max(expiresAt, bannedUntilMs + forgetAfterMs) end
  -- The key version must outlive every record that a replica has cached.
  redis.call('PEXPIRE', key, string.format('%.0f', math.max(expiresAt - now, 60000)))
end

local function reply(outcome)
  return { outcome, now, ${NAMES} }
end

if operation == 'unban' then
  local wasBanned = isBanned()
  if redis.call('EXISTS', key) == 1 then
    strikes, firstRejectionMs, bannedUntilMs, banLevel = 0, 0, 0, 0
    save()
  end
  return reply(wasBanned and ${OUTCOMES.done} or ${OUTCOMES.rejected})
end

if operation == 'announce' then
  redis.call('HSET', key, '${FIELDS.keyVersion}', math.max(keyVersion, args.version))
  if redis.call('PTTL', key) < 60000 then redis.call('PEXPIRE', key, 60000) end
  return reply(${OUTCOMES.done})
end

if operation == 'take' and not args.justRead and args.version < keyVersion then return reply(${OUTCOMES.stale}) end

if delta then
  local isSameMinute = delta.window.minute == minute
  if isSameMinute then minuteUsed = math.max(0, minuteUsed + delta.used.minute) end
  if delta.window.day == day then dayUsed = math.max(0, dayUsed + delta.used.day) end
  if isSameMinute and delta.strikes > 0 and firstRejectionMs ~= 0 and not isBanned() then addStrikes(delta.strikes) end
end

if operation == 'reconcile' then
  save()
  return reply(${OUTCOMES.done})
end

keyVersion = args.version
if isBanned() then
  save()
  return reply(${OUTCOMES.rejected})
end
if minuteUsed >= rules.limits.minute or dayUsed >= rules.limits.day then
  if firstRejectionMs == 0 then
    firstRejectionMs = now
  elseif now - firstRejectionMs > rules.ban.graceMs then
    addStrikes(1)
  end
  save()
  return reply(${OUTCOMES.rejected})
end
minuteUsed, dayUsed = minuteUsed + 1, dayUsed + 1
save()
return reply(${OUTCOMES.done})
`
