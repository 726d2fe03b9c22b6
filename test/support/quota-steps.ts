import { expect } from 'chai'
import { readRateLimitFields, readQuotaHeaders } from './responses.js'
import type { TestResponse, TestApi } from './api.js'

/** Moves the clock to the first millisecond of the key's next minute, whose phase follows from its random id. Costs one request of this one. */
export async function moveToMinuteStart(api: TestApi, key: string): Promise<void> {
  const { minute } = readRateLimitFields(await api.send('/v1/store/orders', { key }))
  api.clock.advanceSeconds(minute?.resetInSeconds ?? Number.NaN)
}

/** Sends until nothing is left in the window that binds. */
export async function exhaustQuota(api: TestApi, key: string): Promise<void> {
  for (;;) {
    const answer = await api.send('/v1/store/orders', { key })
    expect(answer.status).to.equal(200)
    if (readQuotaHeaders(answer).remaining === 0) return
  }
}

/** `Retry-After` in whole seconds, 1 or more. */
export function readRetryAfterSeconds({ headers }: Pick<TestResponse, 'headers'>): number {
  expect(headers['retry-after']).to.match(/^[1-9]\d*$/)
  return Number(headers['retry-after'])
}
