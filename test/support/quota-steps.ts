import { expect } from 'chai'
import { rateLimitFields, tripleOf } from './responses.js'
import type { TestResponse, TestApi } from './api.js'

/** Moves the clock to the first millisecond of the key's next minute, whose phase follows from its random id. Costs one request of this one. */
export async function atMinuteStart(api: TestApi, key: string): Promise<void> {
  const { minute } = rateLimitFields(await api.send('/v1/store/orders', { key }))
  api.clock.advanceSeconds(minute?.resetInSeconds ?? Number.NaN)
}

/** Sends until nothing is left in the window that binds. */
export async function useUp(api: TestApi, key: string): Promise<void> {
  for (;;) {
    const answer = await api.send('/v1/store/orders', { key })
    expect(answer.status).to.equal(200)
    if (tripleOf(answer).remaining === 0) return
  }
}

/** `Retry-After` in whole seconds, 1 or more. */
export function retryAfterSeconds({ headers }: Pick<TestResponse, 'headers'>): number {
  expect(headers['retry-after']).to.match(/^[1-9]\d*$/)
  return Number(headers['retry-after'])
}
