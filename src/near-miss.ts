import leven from 'leven'

/**
 * Whether a name is probably a misspelled setting: one character is wrong, missing or extra, or, in longer names, two are missing or extra.
 * Other similar names belong to other programs: `POST` (`PORT`), `STAGE` (`STORAGE`), `REDIS_TTL` (`REDIS_URL`), `SAMPLE_RATE` (`SAMPLE_DATA`).
 */
export function isNearMiss(name: string, setting: string): boolean {
  const shorter = Math.min(name.length, setting.length)
  if (shorter < 6) return false
  const distance = leven(name, setting)
  return distance === 1 || (distance === 2 && shorter >= 9 && Math.abs(name.length - setting.length) === 2)
}
