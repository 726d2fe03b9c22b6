import { readConfig } from '../../src/config.js'
import type { Plans } from '../../src/core/plan.js'
import type { Answer, Sent, TestApi } from './api.js'
import { ampleKey } from './with-api.js'

/** One request of a sweep over routes, callers and faults, with what came of it. */
export interface Swept {
  readonly caller: string
  readonly path: string
  readonly method: string
  readonly answer: Answer
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

/** So many failed authentications that a sweep does not lock its own address out. */
export function patientPlans(): Plans {
  return { ...readConfig({}).plans, failedAuthenticationsPerMinute: 10_000 }
}

/** Every request as every caller, one after the other: no key, a bad one, a good one, one that is used up, and one that is banned. */
export async function sweep(api: TestApi): Promise<Swept[]> {
  const callers: Readonly<Record<string, string | undefined>> = {
    'no key': undefined,
    'a bad key': 'pst_live_rubbish',
    'a good key': await ampleKey(api),
    'a key used up': await usedUpKey(api),
    'a banned key': await bannedKey(api),
  }
  const swept: Swept[] = []
  for (const [caller, key] of Object.entries(callers)) {
    for (const [path, sent] of REQUESTS) {
      const answer = await api.send(path, { ...sent, ...(key === undefined ? {} : { key }) })
      swept.push({ caller, path, method: sent.method ?? 'GET', answer })
    }
  }
  return swept
}

async function usedUpKey(api: TestApi): Promise<string> {
  const { secret } = await api.issueKey('enterprise', { limits: { minute: 1000, day: 1 } })
  await api.send('/v1/pets', { key: secret })
  return secret
}

async function bannedKey(api: TestApi): Promise<string> {
  const { secret } = await api.issueKey('enterprise', { limits: { minute: 2, day: 2 } })
  for (let request = 0; request < 3; request += 1) await api.send('/v1/pets', { key: secret })
  // Behind the grace, and within the minute of the first refusal: where that ends first, another one begins.
  for (let strike = 0; strike < 130; strike += 1) {
    api.clock.advanceMs(strike % 65 === 0 ? 1001 : 0)
    const { json } = await api.send('/v1/pets', { key: secret })
    if (json.code === 'key_temporarily_banned') return secret
  }
  throw new Error('The key was not banned')
}
