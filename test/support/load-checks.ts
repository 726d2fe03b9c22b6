import { expect } from 'chai'
import { getMinutePhaseSeconds } from '../../src/core/window.js'
import type { Hit } from './load-generator.js'
import type { Written } from './pet-writers.js'
import { expectError, readQuotaHeaders, readRateLimitFields } from './responses.js'

/** Checks that the response has its whole body and the headers that every response under `/v1` carries. */
export function expectCompleteResponse({ status = 0, headers, body }: Hit): void {
  const { limit, remaining } = readQuotaHeaders({ headers })
  expect(remaining).to.be.within(0, limit)
  readRateLimitFields({ headers })
  expect(headers['x-request-id'])
    .to.be.a('string')
    .that.matches(/^[A-Za-z0-9._-]{1,64}$/)
  expect(headers['content-type']).to.equal('application/json')
  expect(headers['content-length']).to.equal(`${Buffer.byteLength(body)}`)
  if (status === 429 || status === 503) expect(headers['retry-after']).to.match(/^[1-9]\d*$/)
  const { code } = JSON.parse(body) as { code: string }
  if (status >= 400) expectError({ status, headers, text: body }, status, code)
}

/** Counts the admitted requests of a key by minute. The minute is the one that the response reports. */
export function countGrantedPerMinute(hits: readonly Hit[], keyId: string): Map<number, number> {
  const granted = new Map<number, number>()
  for (const { status, headers, endMs } of hits) {
    if (status !== 200) continue
    const minute = readRateLimitFields({ headers })['minute']
    if (!minute) throw new Error('The response does not report the minute')
    const resetSeconds = (performance.timeOrigin + endMs) / 1000 + minute.resetInSeconds
    const number = Math.round((resetSeconds + getMinutePhaseSeconds(keyId)) / minute.windowSeconds) - 1
    granted.set(number, (granted.get(number) ?? 0) + 1)
  }
  return granted
}

/** The highest number of requests that one minute admitted. */
export function countMostGranted(hits: readonly Hit[], keyId: string): number {
  return Math.max(0, ...countGrantedPerMinute(hits, keyId).values())
}

export function readErrorCode({ status = 0, body }: Hit): string | undefined {
  return status >= 400 ? (JSON.parse(body) as { code: string }).code : undefined
}

export function toHit({ response, tookMs, endMs }: Written): Hit {
  const { status, headers = {}, text: body = '' } = response ?? {}
  return { url: '', ...(status === undefined ? {} : { status }), headers, body, startMs: endMs - tookMs, endMs }
}

export function findSlowestMs(hits: readonly Hit[]): number {
  return Math.round(Math.max(0, ...hits.map(({ startMs, endMs }) => endMs - startMs)))
}
