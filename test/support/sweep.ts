import { readConfig } from '../../src/config.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { Plans } from '../../src/core/plan.js'
import type { TestResponse, Sent, TestApi } from './api.js'
import type { UnreliablePetStore } from './unreliable-pet-store.js'
import { issueAmpleKey } from './api.js'

/** One request of a sweep over routes, callers and errors, with its response. */
export interface SweepResult {
  readonly caller: string
  readonly path: string
  readonly method: string
  readonly response: TestResponse
  /** The time of the response on the clock of the service: Unix time in milliseconds. */
  readonly atMs: number
}

const JSON_TYPE = { 'content-type': 'application/json' }
const REX = { name: 'Rex', categoryId: 7 }

const REQUESTS: readonly (readonly [string, Sent])[] = [
  ['/v1/pets', {}],
  ['/v1/pets', { method: 'HEAD' }],
  ['/v1/pets', { method: 'OPTIONS' }],
  ['/v1/pets', { method: 'DELETE' }],
  ['/v1/pets?limit=2', {}],
  ['/v1/pets?limit=0&x=1', {}],
  ['/v1/pets?cursor=x', {}],
  ['/v1/pets', { headers: { accept: 'text/html' } }],
  ['/v1/pets', { headers: { expect: 'a-miracle' } }],
  ['/v1/pets', { method: 'POST', body: REX }],
  ['/v1/pets', { method: 'POST', body: REX, headers: { 'idempotency-key': 'sweep' } }],
  ['/v1/pets', { method: 'POST', body: REX, headers: { 'idempotency-key': 'sweep' } }],
  ['/v1/pets', { method: 'POST', body: { ...REX, name: 'Max' }, headers: { 'idempotency-key': 'sweep' } }],
  ['/v1/pets', { method: 'POST', body: REX, headers: { 'idempotency-key': '!' } }],
  ['/v1/pets', { method: 'POST', body: REX, headers: { accept: 'text/html' } }],
  ['/v1/pets', { method: 'POST' }],
  ['/v1/pets', { method: 'POST', body: {} }],
  ['/v1/pets', { method: 'POST', body: '{', headers: JSON_TYPE }],
  ['/v1/pets', { method: 'POST', body: 'x' }],
  ['/v1/pets', { method: 'POST', body: 'x', headers: { ...JSON_TYPE, 'content-encoding': 'gzip' } }],
  ['/v1/pets', { method: 'POST', body: ' '.repeat(65_537), headers: JSON_TYPE }],
  ['/v1/pets/1', {}],
  ['/v1/pets/1', { method: 'HEAD' }],
  ['/v1/pets/1', { method: 'OPTIONS' }],
  ['/v1/pets/1', { method: 'PUT', body: REX }],
  ['/v1/pets/1', { headers: { accept: 'image/png' } }],
  ['/v1/pets/1', { headers: { expect: 'a-miracle' } }],
  ['/v1/pets/1?x=1', {}],
  ['/v1/pets/999', {}],
  ['/v1/pets/abc', {}],
  ['/v1/store/orders', {}],
  ['/v1/store/orders?limit=2', {}],
  ['/v1/store/orders?status=sold', {}],
  ['/v1/store/orders?cursor=x', {}],
  ['/v1/store/orders', { method: 'HEAD' }],
  ['/v1/store/orders', { method: 'OPTIONS' }],
  ['/v1/store/orders', { method: 'TRACE' }],
  ['/v1/store/orders', { headers: { accept: 'image/png' } }],
  ['/v1/usage', {}],
  ['/v1/usage', { method: 'HEAD' }],
  ['/v1/usage', { method: 'OPTIONS' }],
  ['/v1/usage', { method: 'POST' }],
  ['/v1/usage?x=1', {}],
  ['/v1/usage', { headers: { accept: 'image/png' } }],
  ['/v1/none', {}],
  ['/v1', { method: 'POST' }],
]

const REQUESTS_OF_PETS: readonly (readonly [string, Sent])[] = [
  ['/v1/pets', {}],
  ['/v1/pets/1', {}],
  ['/v1/pets', { method: 'POST', body: REX }],
]

/** Returns plans with a failure limit that is so high that a sweep does not lock out its own IP address. */
export function plansWithHighFailureLimit(): Plans {
  return { ...readConfig({}).plans, failedAuthenticationsPerMinute: 10_000 }
}

/** Sends every request as every caller, one after the other. */
export async function sweep(api: TestApi): Promise<SweepResult[]> {
  const callers: Readonly<Record<string, string | undefined>> = {
    'no key': undefined,
    'an invalid key': 'pst_live_rubbish',
    'a valid key': await issueAmpleKey(api),
    'an exhausted key': await issueExhaustedKey(api),
    'a revoked key': await issueRevokedKey(api),
    'a banned key': await issueBannedKey(api),
  }
  const results: SweepResult[] = []
  for (const [caller, key] of Object.entries(callers)) {
    for (const [path, sent] of REQUESTS) {
      results.push(await sweepOne(api, caller, path, { ...sent, ...(key === undefined ? {} : { key }) }))
    }
  }
  return results
}

/** Sends requests that fail because of `pets`, the pet store of the service: with an unexpected error, and because it is unavailable. */
export async function sweepFailures(api: TestApi, pets: UnreliablePetStore): Promise<SweepResult[]> {
  const key = await issueAmpleKey(api)
  const results: SweepResult[] = []
  for (const failure of [new TypeError('unexpected'), new StoreUnavailable('timed out')]) {
    pets.failure = failure
    for (const [path, sent] of REQUESTS_OF_PETS) {
      results.push(await sweepOne(api, 'a caller of a failing store', path, { ...sent, key }))
    }
  }
  pets.failure = undefined
  return results
}

/** Moves the clock to 2030 and sends requests to the operation that has been removed by then. */
export async function sweepRemoved(api: TestApi): Promise<SweepResult[]> {
  const key = await issueAmpleKey(api)
  api.clock.moveTo(Date.parse('2030-12-05T00:00:00Z'))
  const sendTo = (method: string) => sweepOne(api, 'a late caller', '/v1/pets/1', { key, method })
  return [await sendTo('GET'), await sendTo('HEAD')]
}

async function sweepOne(api: TestApi, caller: string, path: string, sent: Sent): Promise<SweepResult> {
  const response = await api.send(path, sent)
  return { caller, path, method: sent.method ?? 'GET', response, atMs: api.clock.nowMs() }
}

async function issueExhaustedKey(api: TestApi): Promise<string> {
  const { secret } = await api.issueKey('enterprise', { limits: { minute: 1000, day: 1 } })
  await api.send('/v1/pets', { key: secret })
  return secret
}

async function issueBannedKey(api: TestApi): Promise<string> {
  const { secret } = await api.issueKey('enterprise', { limits: { minute: 2, day: 2 } })
  for (let request = 0; request < 3; request += 1) await api.send('/v1/pets', { key: secret })
  // A strike counts only after the grace period, in the minute of the first rejection. If that minute ends, a second round follows.
  for (let strike = 0; strike < 130; strike += 1) {
    api.clock.advanceMs(strike % 65 === 0 ? 1001 : 0)
    const { json } = await api.send('/v1/pets', { key: secret })
    if (json.code === 'key_temporarily_banned') return secret
  }
  throw new Error('The key was not banned')
}

/** The replica has cached the key before its revocation, and the cached record has expired since. */
async function issueRevokedKey(api: TestApi): Promise<string> {
  const { key, secret } = await api.issueKey('free')
  await api.send('/v1/pets', { key: secret })
  await api.parts.apiKeyAdmin.revoke(key.keyId, 'tests')
  api.clock.advanceSeconds(10)
  return secret
}
