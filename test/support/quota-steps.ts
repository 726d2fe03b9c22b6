import { expect } from 'chai'
import { readRateLimitFields, readQuotaHeaders } from './responses.js'
import type { TestResponse, TestApi } from './api.js'

/** Moves the clock to the start of the next minute of the key, whose phase depends on its random ID. Charges nothing. */
export async function moveToMinuteStart(api: TestApi, key: string): Promise<void> {
  const { minute } = readRateLimitFields(await api.send('/v1/usage', { key }))
  api.clock.advanceSeconds(minute?.resetInSeconds ?? Number.NaN)
}

/** Sends requests until none remain in the minute or in the day. */
export async function exhaustQuota(api: TestApi, key: string): Promise<void> {
  for (;;) {
    const response = await api.send('/v1/store/orders', { key })
    expect(response.status).to.equal(200)
    if (readQuotaHeaders(response).remaining === 0) return
  }
}

/** Reads `Retry-After`, which must be 1 or more whole seconds. */
export function readRetryAfterSeconds({ headers }: Pick<TestResponse, 'headers'>): number {
  expect(headers['retry-after']).to.match(/^[1-9]\d*$/)
  return Number(headers['retry-after'])
}
