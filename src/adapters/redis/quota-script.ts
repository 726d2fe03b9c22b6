/** The fields of a key's hash. Deployed data depends on these letters: they must not change. A value of 0 is not stored. */
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

/**
 * `transition`, `reconcile`, `unban` and the key version of core/quota.ts on one hash, each in one atomic step. The core explains the rules;
 * tests compare the two on random traffic.
 *
 * KEYS[1] is the hash, and ARGV[1] the `ScriptArguments` as JSON.
 * Returns the outcome, the time in milliseconds and the values of all FIELDS.
 */
export const QUOTA_SCRIPT = `
local key, args = KEYS[1], cjson.decode(ARGV[1])
local operation, rules, delta = args.operation, args.rules, args.delta
local forgetAfterMs = rules and rules.ban.forgetAfterMs or 0
local FIELDS = ${toLuaList(Object.values(FIELDS))}
local NAMES = ${toLuaList(Object.keys(FIELDS))}

local now = args.nowMs
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local stored, state = {}, {}
for index, value in ipairs(redis.call('HMGET', key, unpack(FIELDS))) do
  stored[NAMES[index]] = tonumber(value or 0)
  state[NAMES[index]] = stored[NAMES[index]]
end

-- If the clock steps back to before the start of a window, that window must not open a second time.
local function currentWindow(known, byClock)
  if known == byClock + 1 then return known end
  return byClock
end
local seconds = math.floor(now / 1000)
state.minute = currentWindow(stored.minute, math.floor((seconds + args.phaseSeconds) / 60))
state.day = currentWindow(stored.day, math.floor(seconds / 86400))
if state.minute ~= stored.minute then state.minuteUsed, state.strikes, state.firstRejectionMs = 0, 0, 0 end
if state.day ~= stored.day then state.dayUsed = 0 end
if now >= state.bannedUntilMs + forgetAfterMs then state.banLevel = 0 end

local function isBanned()
  return now < state.bannedUntilMs
end

local function addStrikes(count)
  state.strikes = state.strikes + count
  if state.strikes < args.strikesToBan then return end
  state.bannedUntilMs = now + math.min(rules.ban.firstMs * 2 ^ state.banLevel, rules.ban.longestMs)
  state.banLevel, state.strikes, state.firstRejectionMs = state.banLevel + 1, 0, 0
end

local function save()
  local set, unset = {}, {}
  for index, name in ipairs(NAMES) do
    local value = state[name]
    if value ~= stored[name] and value == 0 then
      unset[#unset + 1] = FIELDS[index]
    elseif value ~= stored[name] then
      set[#set + 1] = FIELDS[index]
      set[#set + 1] = string.format('%.0f', value)
    end
  end
  if #set > 0 then redis.call('HSET', key, unpack(set)) end
  if #unset > 0 then redis.call('HDEL', key, unpack(unset)) end
  if state.minute == stored.minute and state.day == stored.day and state.bannedUntilMs == stored.bannedUntilMs then return end
  local expiresAt = math.max((state.day + 1) * 86400000, (state.minute + 1) * 60000)
  if state.banLevel > 0 then expiresAt = math.max(expiresAt, state.bannedUntilMs + forgetAfterMs) end
  -- The key version must outlive every record that a replica has cached.
  redis.call('PEXPIRE', key, string.format('%.0f', math.max(expiresAt - now, 60000)))
end

local function reply(outcome)
  local values = { outcome, now }
  for index, name in ipairs(NAMES) do values[index + 2] = state[name] end
  return values
end

if operation == 'unban' then
  local wasBanned = isBanned()
  if redis.call('EXISTS', key) == 1 then
    state.strikes, state.firstRejectionMs, state.bannedUntilMs, state.banLevel = 0, 0, 0, 0
    save()
  end
  return reply(wasBanned and ${OUTCOMES.done} or ${OUTCOMES.rejected})
end

if operation == 'announce' then
  redis.call('HSET', key, '${FIELDS.keyVersion}', math.max(state.keyVersion, args.version))
  if redis.call('PTTL', key) < 60000 then redis.call('PEXPIRE', key, 60000) end
  return reply(${OUTCOMES.done})
end

if operation == 'take' and not args.justRead and args.version < state.keyVersion then return reply(${OUTCOMES.stale}) end

if delta then
  local isSameMinute = delta.window.minute == state.minute
  if isSameMinute then state.minuteUsed = math.max(0, state.minuteUsed + delta.used.minute) end
  if delta.window.day == state.day then state.dayUsed = math.max(0, state.dayUsed + delta.used.day) end
  if isSameMinute and delta.strikes > 0 and state.firstRejectionMs ~= 0 and not isBanned() then addStrikes(delta.strikes) end
end

if operation == 'reconcile' then
  save()
  return reply(${OUTCOMES.done})
end

state.keyVersion = args.version
if isBanned() then
  save()
  return reply(${OUTCOMES.rejected})
end
if state.minuteUsed >= rules.limits.minute or state.dayUsed >= rules.limits.day then
  if state.firstRejectionMs == 0 then
    state.firstRejectionMs = now
  elseif now - state.firstRejectionMs > rules.ban.graceMs then
    addStrikes(1)
  end
  save()
  return reply(${OUTCOMES.rejected})
end
state.minuteUsed, state.dayUsed = state.minuteUsed + 1, state.dayUsed + 1
save()
return reply(${OUTCOMES.done})
`

function toLuaList(texts: readonly string[]): string {
  return `{ ${texts.map((text) => `'${text}'`).join(', ')} }`
}
