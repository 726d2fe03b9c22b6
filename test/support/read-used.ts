import type { QuotaUsage } from '../../src/core/quota.js'

/** The requests charged to the minute and the day. */
export function readUsed({ windows }: QuotaUsage): [minute: number, day: number] {
  return [windows.minute.used, windows.day.used]
}
