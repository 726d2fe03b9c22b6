import leven from 'leven'

/**
 * Whether a name is probably a misspelled setting: one character is wrong, missing or extra, or, in longer names, two are missing or extra.
 * Similar names of other programs do not match: `POST` (`PORT`), `STAGE` (`STORAGE`), `REDIS_TTL` (`REDIS_URL`), `SAMPLE_RATE` (`SAMPLE_DATA`).
 */
export function isLikelyTypo(name: string, setting: string): boolean {
  const shorterLength = Math.min(name.length, setting.length)
  if (shorterLength < 6) return false
  const distance = leven(name, setting)
  return distance === 1 || (distance === 2 && shorterLength >= 9 && Math.abs(name.length - setting.length) === 2)
}
