import { readConfig } from '../../src/config.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { Plans } from '../../src/core/plan.js'
import { GET_PET_REMOVED_AT_MS } from '../../src/core/use-cases/get-pet.js'
import type { TestResponse, Sent, TestApi } from './api.js'
import type { UnreliablePetStore } from './unreliable-pet-store.js'
import { issueAmpleKey } from './api.js'

/** One request of a sweep over routes, callers and problems, with what came of it. */
export interface Swept {
  readonly caller: string
  readonly path: string
  readonly method: string
  readonly answer: TestResponse
  /** When it came, by the clock of the service: Unix time in milliseconds. */
  readonly atMs: number
}

const JSON_TYPE = { 'content-type': 'application/json' }
const REX = { name: 'Rex', categoryId: 7 }

/** [path, what is sent there] */
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
  ['/v1/none', {}],
  ['/v1', { method: 'POST' }],
]

const REQUESTS_OF_PETS: readonly (readonly [string, Sent])[] = [
  ['/v1/pets', {}],
  ['/v1/pets/1', {}],
  ['/v1/pets', { method: 'POST', body: REX }],
]

/** So many failed authentications that a sweep does not lock its own address out. */
export function patientPlans(): Plans {
  return { ...readConfig({}).plans, failedAuthenticationsPerMinute: 10_000 }
}

/** Every request as every caller, one after the other: no key, a bad one, a good one, one that is used up, one that is revoked, and one that is banned. */
export async function sweep(api: TestApi): Promise<Swept[]> {
  const callers: Readonly<Record<string, string | undefined>> = {
    'no key': undefined,
    'a bad key': 'pst_live_rubbish',
    'a good key': await issueAmpleKey(api),
    'a key used up': await usedUpKey(api),
    'a revoked key': await revokedKey(api),
    'a banned key': await bannedKey(api),
  }
  const swept: Swept[] = []
  for (const [caller, key] of Object.entries(callers)) {
    for (const [path, sent] of REQUESTS) {
      swept.push(await sweepOne(api, caller, path, { ...sent, ...(key === undefined ? {} : { key }) }))
    }
  }
  return swept
}

/** Requests that fail because `pets`, which the service works on, fails: by a surprise, and by being away. */
export async function sweepFailures(api: TestApi, pets: UnreliablePetStore): Promise<Swept[]> {
  const key = await issueAmpleKey(api)
  const swept: Swept[] = []
  for (const failure of [new TypeError('a surprise'), new StoreUnavailable('no answer in time')]) {
    pets.failure = failure
    for (const [path, sent] of REQUESTS_OF_PETS) {
      swept.push(await sweepOne(api, 'a caller of a failing store', path, { ...sent, key }))
    }
  }
  pets.failure = undefined
  return swept
}

/** Requests of what was removed. Moves the clock by years. */
export async function sweepRemoved(api: TestApi): Promise<Swept[]> {
  const key = await issueAmpleKey(api)
  api.clock.moveTo(GET_PET_REMOVED_AT_MS)
  const [got, headed] = [{ key }, { key, method: 'HEAD' }]
  return [await sweepOne(api, 'a late caller', '/v1/pets/1', got), await sweepOne(api, 'a late caller', '/v1/pets/1', headed)]
}

async function sweepOne(api: TestApi, caller: string, path: string, sent: Sent): Promise<Swept> {
  const answer = await api.send(path, sent)
  return { caller, path, method: sent.method ?? 'GET', answer, atMs: api.clock.nowMs() }
}

async function usedUpKey(api: TestApi): Promise<string> {
  const { secret } = await api.issueKey('enterprise', { limits: { minute: 1000, day: 1 } })
  await api.send('/v1/pets', { key: secret })
  return secret
}

async function bannedKey(api: TestApi): Promise<string> {
  const { secret } = await api.issueKey('enterprise', { limits: { minute: 2, day: 2 } })
  for (let request = 0; request < 3; request += 1) await api.send('/v1/pets', { key: secret })
  // Behind the grace, and within the minute of the first rejection: where that ends first, another one begins.
  for (let strike = 0; strike < 130; strike += 1) {
    api.clock.advanceMs(strike % 65 === 0 ? 1001 : 0)
    const { json } = await api.send('/v1/pets', { key: secret })
    if (json.code === 'key_temporarily_banned') return secret
  }
  throw new Error('The key was not banned')
}

/** Served before, so that the replica knows it, and revoked for so long that it has read its record again, whether it was told or not. */
async function revokedKey(api: TestApi): Promise<string> {
  const { key, secret } = await api.issueKey('free')
  await api.send('/v1/pets', { key: secret })
  await api.parts.apiKeyAdmin.revoke(key.keyId)
  api.clock.advanceSeconds(10)
  return secret
}
