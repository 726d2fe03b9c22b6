import leven from 'leven'

/**
 * Whether a name is most likely a misspelt setting: one character is wrong, missing or extra, or two are missing or extra in longer names.
 * Names beyond that belong to others: `POST` next to `PORT`, `STAGE` to `STORAGE`, `REDIS_TTL` to `REDIS_URL`, `SAMPLE_RATE` to `SAMPLE_DATA`.
 */
export function isNearMiss(name: string, setting: string): boolean {
  const shorter = Math.min(name.length, setting.length)
  if (shorter < 6) return false
  const distance = leven(name, setting)
  return distance === 1 || (distance === 2 && shorter >= 9 && Math.abs(name.length - setting.length) === 2)
}
