import { expect } from 'chai'
import { rateLimitFields, tripleOf } from './responses.js'
import type { TestResponse, TestApi } from './api.js'

/** Moves the clock to the first millisecond of the key's next minute. Costs one request of the current minute. */
export async function atMinuteStart(api: TestApi, key: string): Promise<void> {
  const { minute } = rateLimitFields(await api.send('/v1/store/orders', { key }))
  api.clock.advanceSeconds(minute?.resetInSeconds ?? Number.NaN)
}

/** Sends requests until none remains in the binding window. */
export async function useUp(api: TestApi, key: string): Promise<void> {
  for (;;) {
    const response = await api.send('/v1/store/orders', { key })
    expect(response.status).to.equal(200)
    if (tripleOf(response).remaining === 0) return
  }
}

/** `Retry-After` in whole seconds, 1 or more. */
export function retryAfterSeconds({ headers }: Pick<TestResponse, 'headers'>): number {
  expect(headers['retry-after']).to.match(/^[1-9]\d*$/)
  return Number(headers['retry-after'])
}
