import { UNBAN_KEPT_MS } from '../../core/quota.js'
import { WINDOWS } from '../../core/window.js'

/** The fields of a key's hash. Do not change these letters: deployed data depends on them. A value of 0 is not stored. Replies have this order. */
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
  unbannedAtMs: 'u',
} as const

/** The first number of a reply. `banned`: the request was rejected and started a ban. After `epochChanged` and `corrupt`, nothing else follows. */
export const OUTCOMES = { rejected: 0, done: 1, stale: 2, epochChanged: 3, corrupt: 4, banned: 5 } as const
export type OutcomeName = keyof typeof OUTCOMES
export const OUTCOME_NAMES = Object.keys(OUTCOMES) as OutcomeName[]

/** Appended to the epoch marker: a key that exists while a replica restores what it knows. Its value is its initial time to live in milliseconds. */
export const RESTORING_SUFFIX = ':restoring'

const NAMES = Object.keys(FIELDS).join(', ')
/** Without a format, Lua rounds numbers to 14 digits. */
const REPLY_FORMAT = `[${['outcome', 'nowMs', ...Object.keys(FIELDS)].map(() => '%.0f').join(',')}]`
const LETTERS = `'${Object.values(FIELDS).join("', '")}'`

/**
 * Implements `transition`, `reconcile`, `unban` and the key version of core/quota.ts, and `mergeQuotaStates`, on hashes of one shard. The core
 * documents the rules, and tests compare the two on random traffic. All operations of a call are one atomic step.
 *
 * KEYS[1] is the epoch marker of the shard, and KEYS[i + 1] the hash of operation i. ARGV[1] is a JSON array of `ScriptArguments`, and ARGV[2] a JSON
 * array with the number of times to execute each operation. No operation may raise an error, because earlier ones have already written.
 * Returns a JSON array with one reply per execution: the outcome, the time in milliseconds and the values of all FIELDS.
 */
export const QUOTA_SCRIPT = `
local epochMarker, replies = KEYS[1], {}
local epoch, time = redis.call('GET', epochMarker), redis.call('TIME')
local redisNow = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local function currentWindow(known, byClock, keptAhead)
  if known > byClock and known <= byClock + keptAhead then return known end
  return byClock
end

-- Changes of these fields change the time at which the hash expires.
local expiryFields = { ${FIELDS.minute} = true, ${FIELDS.day} = true, ${FIELDS.bannedUntilMs} = true, ${FIELDS.unbannedAtMs} = true }

local function execute(key, args, repetitions)
  local operation, options = args.operation, args.options or {}
  local delta = options.delta
  local minuteLimit, dayLimit, strikesToBan, graceMs, firstBanMs, longestBanMs, forgetAfterMs = unpack(args.rules or { 0, 0, 0, 0, 0, 0, 0 })
  local now = args.nowMs or redisNow

  local function repeatReply(reply)
    for _ = 1, repetitions do replies[#replies + 1] = reply end
  end

  if options.epoch and epoch ~= options.epoch then return repeatReply('[${OUTCOMES.epochChanged}]') end

  if options.restoringMs then redis.call('SET', epochMarker .. '${RESTORING_SUFFIX}', options.restoringMs, 'PX', options.restoringMs) end

  local stored = redis.pcall('HMGET', key, ${LETTERS})
  local isCorrupt = stored.err ~= nil
  for index = 1, ${Object.keys(FIELDS).length} do
    local value = not isCorrupt and tonumber(stored[index] or 0)
    isCorrupt = not value or value < 0 or value > 9007199254740991 or value % 1 ~= 0
    stored[index] = value
  end
  if isCorrupt then
    if not options.isRepair then return repeatReply('[${OUTCOMES.corrupt}]') end
    for index = 1, ${Object.keys(FIELDS).length} do stored[index] = 0 end
  end
  local ${NAMES} = unpack(stored)

  for _, known in ipairs(options.known or {}) do
    local lastMinute = math.max(minute, known.window.minute)
    local isNewer = known.unbannedAtMs > unbannedAtMs or known.unbannedAtMs == unbannedAtMs and known.bannedUntilMs > bannedUntilMs
    local isSame = known.unbannedAtMs == unbannedAtMs and known.bannedUntilMs == bannedUntilMs
    if isNewer or minute < lastMinute then strikes, firstRejectionMs = 0, 0 end
    if (isNewer or isSame) and known.window.minute == lastMinute then
      local first = known.firstRejectionMs or 0
      strikes = math.max(strikes, known.strikes)
      if firstRejectionMs == 0 or first > 0 and first < firstRejectionMs then firstRejectionMs = first end
    end
    if isNewer then bannedUntilMs, banLevel, unbannedAtMs = known.bannedUntilMs, known.banLevel, known.unbannedAtMs end
    if isSame then banLevel = math.max(banLevel, known.banLevel) end
    if known.window.minute > minute then minute, minuteUsed = known.window.minute, 0 end
    if known.window.minute == minute then minuteUsed = math.max(minuteUsed, known.used.minute) end
    if known.window.day > day then day, dayUsed = known.window.day, 0 end
    if known.window.day == day then dayUsed = math.max(dayUsed, known.used.day) end
    keyVersion = math.max(keyVersion, known.keyVersion)
  end

  local seconds = math.floor(now / 1000)
  local minuteNow = currentWindow(minute, math.floor((seconds + args.phaseSeconds) / 60), ${WINDOWS.minute.keptAhead})
  local dayNow = currentWindow(day, math.floor(seconds / 86400), ${WINDOWS.day.keptAhead})
  if minuteNow ~= minute then minute, minuteUsed, strikes, firstRejectionMs = minuteNow, 0, 0, 0 end
  if dayNow ~= day then day, dayUsed = dayNow, 0 end
  if now >= bannedUntilMs + forgetAfterMs then banLevel = 0 end

  local function isBanned()
    return now < bannedUntilMs
  end

  local function addStrikes(count)
    strikes = strikes + count
    if strikes < strikesToBan then return end
    bannedUntilMs = now + math.min(firstBanMs * 2 ^ banLevel, longestBanMs)
    banLevel, strikes, firstRejectionMs = banLevel + 1, 0, 0
  end

  local function unban()
    local wasBanned = isBanned()
    unbannedAtMs = math.max(now, unbannedAtMs + 1)
    strikes, firstRejectionMs, bannedUntilMs, banLevel = 0, 0, 0, 0
    return wasBanned and ${OUTCOMES.done} or ${OUTCOMES.rejected}
  end

  local function announce()
    redis.call('HSET', key, '${FIELDS.keyVersion}', math.max(keyVersion, args.keyVersion.version))
    if redis.call('PTTL', key) < 60000 then redis.call('PEXPIRE', key, 60000) end
    return ${OUTCOMES.done}
  end

  local function addDelta()
    if not delta then return end
    local isSameMinute = delta.window.minute == minute
    if isSameMinute then minuteUsed = math.max(0, minuteUsed + delta.used.minute) end
    if delta.window.day == day then dayUsed = math.max(0, dayUsed + delta.used.day) end
    if isSameMinute and delta.strikes > 0 and firstRejectionMs ~= 0 and not isBanned() then addStrikes(delta.strikes) end
  end

  local function reconcile()
    addDelta()
    return ${OUTCOMES.done}
  end

  local function take()
    local bannedBefore = bannedUntilMs
    addDelta()
    keyVersion = args.keyVersion.version
    if isBanned() then return bannedUntilMs > bannedBefore and ${OUTCOMES.banned} or ${OUTCOMES.rejected} end
    if minuteUsed >= minuteLimit or dayUsed >= dayLimit then
      if firstRejectionMs == 0 then
        firstRejectionMs = now
      elseif now - firstRejectionMs > graceMs then
        addStrikes(1)
      end
      return bannedUntilMs > bannedBefore and ${OUTCOMES.banned} or ${OUTCOMES.rejected}
    end
    minuteUsed, dayUsed = minuteUsed + 1, dayUsed + 1
    return ${OUTCOMES.done}
  end

  local function save()
    local letters, set, unset, isNewExpiry = { ${LETTERS} }, {}, {}, false
    if isCorrupt then redis.call('DEL', key) end
    for index, value in ipairs({ ${NAMES} }) do
      local letter = letters[index]
      if value ~= stored[index] then
        isNewExpiry = isNewExpiry or expiryFields[letter]
        if value == 0 then
          unset[#unset + 1] = letter
        else
          set[#set + 1] = letter
          set[#set + 1] = string.format('%.0f', value)
        end
      end
    end
    if #set > 0 then redis.call('HSET', key, unpack(set)) end
    if #unset > 0 then redis.call('HDEL', key, unpack(unset)) end
    if not isNewExpiry then return end
    local expiresAt = math.max((day + 1) * 86400000, (minute + 1) * 60000)
    if banLevel > 0 then expiresAt = math.max(expiresAt, bannedUntilMs + forgetAfterMs) end
    if unbannedAtMs > 0 then expiresAt = math.max(expiresAt, unbannedAtMs + ${UNBAN_KEPT_MS}) end
    -- The key version must outlive every record that a replica has cached.
    redis.call('PEXPIRE', key, string.format('%.0f', math.max(expiresAt - now, 60000)))
  end

  local function reply(outcome)
    return string.format('${REPLY_FORMAT}', outcome, now, ${NAMES})
  end

  if operation == 'peek' then return repeatReply(reply(${OUTCOMES.done})) end
  if operation == 'take' and math.max(args.keyVersion.version, args.keyVersion.readSince or 0) < keyVersion then return repeatReply(reply(${OUTCOMES.stale})) end
  local run = ({ take = take, reconcile = reconcile, unban = unban, announce = announce })[operation]
  for _ = 1, repetitions do replies[#replies + 1] = reply(run()) end
  if operation ~= 'announce' then save() end
end

local repetitions = cjson.decode(ARGV[2])
for index, args in ipairs(cjson.decode(ARGV[1])) do execute(KEYS[index + 1], args, repetitions[index]) end
return '[' .. table.concat(replies, ',') .. ']'
`
