import { expect } from 'chai'
import { CachedApiKeyVerifier } from '../../../src/adapters/memory/cached-api-key-verifier.js'
import { MemoryApiKeyHistory } from '../../../src/adapters/memory/memory-api-key-history.js'
import { MemoryApiKeyStore } from '../../../src/adapters/memory/memory-api-key-store.js'
import { MemoryFailedAuthentications } from '../../../src/adapters/memory/memory-failed-authentications.js'
import { CryptoApiKeySecrets } from '../../../src/adapters/node/crypto-api-key-secrets.js'
import type { ApiKey } from '../../../src/core/api-key.js'
import type { Admission } from '../../../src/core/use-cases/admit.js'
import { makeAdmit } from '../../../src/core/use-cases/admit.js'
import { makeAuthenticate } from '../../../src/core/use-cases/authenticate.js'
import { makeChangeApiKeyPlan } from '../../../src/core/use-cases/change-api-key-plan.js'
import { makeFinishRotation } from '../../../src/core/use-cases/finish-rotation.js'
import { makeRevokeApiKey } from '../../../src/core/use-cases/revoke-api-key.js'
import { makeRotateApiKey } from '../../../src/core/use-cases/rotate-api-key.js'
import { makeShowApiKey } from '../../../src/core/use-cases/show-api-key.js'
import { makeUnbanApiKey } from '../../../src/core/use-cases/unban-api-key.js'
import { getMinutePhaseSeconds } from '../../../src/core/window.js'
import { anApiKey, anIssue, somePlans } from '../../support/builders.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { anOwnRedis } from '../../support/engines/redis-engine.js'
import { MovableClock } from '../../support/movable-clock.js'
import { aRedisReplica, RedisObserver, untilUnavailable } from '../../support/redis-replica.js'
import { inSequence, inParallel } from '../../support/verdicts.js'

const ADDRESS = '192.0.2.1'

describe('on replicas that have cached the record of a key,', function () {
  this.timeout(20_000)
  let redis: OwnEngine
  let observer: RedisObserver
  let clock: MovableClock
  let store: CountingStore
  let replicas: Replica[]
  let key: ApiKey
  let secret: string

  before(async function () {
    redis = await anOwnRedis(this)
  })

  beforeEach(async () => {
    observer = new RedisObserver(redis.url)
    await observer.client.flushall()
    clock = new MovableClock()
    store = new CountingStore(clock)
    const { secret: generatedSecret, ...publicPart } = new CryptoApiKeySecrets().generate()
    secret = generatedSecret
    key = anApiKey('one', publicPart)
    // The start of a minute of the key, which then does not end during a test.
    clock.advanceSeconds(60 - ((clock.nowMs() / 1000 + getMinutePhaseSeconds(key.keyId)) % 60))
    await store.insert(key, anIssue())
    replicas = await inParallel(2, () => aReplica())
  })

  afterEach(async () => {
    await redis.start()
    await Promise.all(replicas.map(({ redis: replica }) => replica.close()))
    observer.close()
  })

  after(() => redis?.stop())

  async function aReplica() {
    const replica = await aRedisReplica(redis.url, { clock, hasNoTimeout: true, replicas: 2 })
    const failedAuthentications = new MemoryFailedAuthentications(1_000, clock)
    const secrets = new CryptoApiKeySecrets()
    const apiKeyVerifier = new CachedApiKeyVerifier({ secrets, apiKeyStore: store, failedAuthentications, clock })
    const authenticate = makeAuthenticate({ apiKeyVerifier, failedAuthentications })
    const plans = somePlans()
    const ports = { apiKeyStore: store, apiKeyHistory: new MemoryApiKeyHistory(), quotaControl: replica.control, plans, clock }
    return {
      redis: replica,
      admit: makeAdmit({ authenticate, apiKeyVerifier, quotas: replica.quotas, plans }),
      calls: replica.takes,
      changePlan: makeChangeApiKeyPlan(ports),
      revoke: makeRevokeApiKey(ports),
      rotate: makeRotateApiKey({ ...ports, secrets }),
      finishRotation: makeFinishRotation(ports),
      unban: makeUnbanApiKey({ ...ports, showApiKey: makeShowApiKey(ports) }),
    }
  }
  type Replica = Awaited<ReturnType<typeof aReplica>>

  const send = ({ admit }: Replica, sent = secret) => admit({ secret: sent, address: ADDRESS })
  const [first, second] = [() => replicas[0] ?? failMissingReplica(), () => replicas[1] ?? failMissingReplica()]

  it('a plan change applies to the next request on each replica, and usage stays', async () => {
    for (const replica of replicas) expect(getLimits(await send(replica))).to.deep.equal([60, 1000])
    expect(await first().changePlan(key.keyId, { plan: 'pro' }, 'alice')).to.include({ takesEffect: 'at once' })
    const admissions = await inSequence(2, (index) => send(replicas[index] ?? failMissingReplica()))
    expect(admissions.map(getLimits)).to.deep.equal([
      [300, 10_000],
      [300, 10_000],
    ])
    expect(admissions.map(getRemaining)).to.deep.equal([297, 296])
    expect((await observer.hash(key.keyId)).dayUsed).to.equal(4)
  })

  it('a change to a plan with lower limits applies at once on a replica that had many requests left', async () => {
    await first().changePlan(key.keyId, { plan: 'business' }, 'alice')
    await inSequence(70, (index) => send(replicas[index % 2] ?? failMissingReplica()))
    await second().changePlan(key.keyId, { plan: 'free' }, 'alice')
    for (const replica of replicas) {
      const admission = await send(replica)
      expect([getKind(admission), ...getLimits(admission)]).to.deep.equal(['exhausted', 60, 1000])
    }
  })

  it('a revocation invalidates the key for the next request on each replica, and charges nothing', async () => {
    for (const replica of replicas) await send(replica)
    expect(await first().revoke(key.keyId, 'alice')).to.include({ takesEffect: 'at once' })
    for (const replica of replicas) expect((await send(replica)).kind).to.equal('invalid')
    expect((await observer.hash(key.keyId)).dayUsed).to.equal(2)
    const queriesBefore = store.queries
    for (const replica of replicas) expect((await send(replica)).kind).to.equal('invalid')
    expect(store.queries - queriesBefore, 'the revoked record is not cached as a valid one').to.be.at.most(2)
  })

  it('a rotation keeps the old secret for the grace period, and both secrets share one quota on each replica', async () => {
    const oldSecret = secret
    for (const replica of replicas) await send(replica)
    const rotated = await first().rotate(key.keyId, { graceMs: 60_000 }, 'alice')
    for (const replica of replicas) {
      expect(await send(replica, oldSecret)).to.include({ kind: 'decided', secretExpiresAtMs: rotated.key.oldSecret?.expiresAtMs })
      expect(await send(replica, rotated.secret))
        .to.include({ kind: 'decided' })
        .and.not.have.property('secretExpiresAtMs')
    }
    expect((await observer.hash(key.keyId)).dayUsed).to.equal(6)
    clock.advanceMs(59_999)
    for (const replica of replicas) expect((await send(replica, oldSecret)).kind).to.equal('decided')
    clock.advanceMs(1)
    for (const replica of replicas) expect((await send(replica, oldSecret)).kind).to.equal('invalid')
    for (const replica of replicas) expect((await send(replica, rotated.secret)).kind).to.equal('decided')
  })

  it('the next request with the old secret on each replica is rejected after the rotation is finished, or had no grace period', async () => {
    const oldSecret = secret
    for (const replica of replicas) await send(replica)
    const { secret: newSecret } = await first().rotate(key.keyId, { graceMs: 60_000 }, 'alice')
    for (const replica of replicas) for (const one of [oldSecret, newSecret]) expect((await send(replica, one)).kind).to.equal('decided')
    expect(await second().finishRotation(key.keyId, 'alice')).to.include({ takesEffect: 'at once' })
    for (const replica of replicas) expect((await send(replica, oldSecret)).kind).to.equal('invalid')
    for (const replica of replicas) expect((await send(replica, newSecret)).kind).to.equal('decided')

    const { secret: third } = await first().rotate(key.keyId, { graceMs: 0 }, 'alice')
    const before = store.queries
    for (const replica of replicas) expect((await send(replica, newSecret)).kind).to.equal('invalid')
    for (const replica of replicas) expect((await send(replica, third)).kind).to.equal('decided')
    expect(store.queries - before).to.equal(4)
  })

  it('a plan change during 200 requests on both replicas applies to every request that is sent after it', async () => {
    for (const replica of replicas) await send(replica)
    let isChanged = false
    const late: number[][] = []
    await inParallel(4, async (worker) => {
      for (let count = 0; count < 50; count++) {
        const wasChanged = isChanged
        const admission = await send(replicas[worker % 2] ?? failMissingReplica())
        if (wasChanged) late.push(getLimits(admission))
        if (worker === 0 && count === 10) {
          await first().changePlan(key.keyId, { plan: 'business' }, 'alice')
          isChanged = true
        }
      }
    })
    expect(late.length).to.be.above(50)
    expect([...new Set(late.map(String))]).to.deep.equal(['1000,100000'])
  })

  it('an unban takes effect within a second on a replica that rejects the key from its cache', async () => {
    await inSequence(61, () => send(first()))
    clock.advanceMs(1_001)
    for (let count = 0; count < 100; count++) for (const replica of replicas) await send(replica)
    expect(getKind(await send(second()))).to.equal('banned')
    const calls = [first().calls(), second().calls()]
    for (const replica of replicas) expect(getKind(await send(replica))).to.equal('banned')
    expect([first().calls(), second().calls()], 'no call: from the cache').to.deep.equal(calls)

    expect(await second().unban(key.keyId, 'alice')).to.include({ outcome: 'lifted' })
    clock.advanceMs(1_000)
    // The minute is still exhausted.
    for (const replica of replicas) expect(getKind(await send(replica))).to.equal('exhausted')
  })

  it('a plan change applies within a second on a replica that rejects the key from its cache', async () => {
    for (let count = 0; count < 100; count++) for (const replica of replicas) await send(replica)
    await first().changePlan(key.keyId, { plan: 'pro' }, 'alice')
    clock.advanceMs(1_000)
    for (const replica of replicas) expect(getKind(await send(replica))).to.equal('admitted')
  })

  it('a plan change costs each replica one extra call and one query, once; other requests cost one call and no query', async () => {
    for (const replica of replicas) await send(replica)
    const before = [first().calls(), store.queries]
    await inSequence(20, () => send(first()))
    expect([first().calls(), store.queries]).to.deep.equal([(before[0] ?? 0) + 20, before[1]])
    await second().changePlan(key.keyId, { plan: 'pro' }, 'alice')
    const afterChange = [first().calls(), store.queries]
    await inSequence(20, () => send(first()))
    expect([first().calls(), store.queries]).to.deep.equal([(afterChange[0] ?? 0) + 21, (afterChange[1] ?? 0) + 1])
  })

  it('a plan change during a Redis outage applies once the record is read again, and the result says so', async () => {
    for (const replica of replicas) await send(replica)
    await redis.kill()
    for (const { redis: replica } of replicas) await untilUnavailable(replica)
    expect(await first().changePlan(key.keyId, { plan: 'pro' }, 'alice')).to.include({ takesEffect: 'within 10 s' })
    expect(getLimits(await send(first()))).to.deep.equal([60, 1000])
    clock.advanceSeconds(10)
    for (const replica of replicas) expect(getLimits(await send(replica))).to.deep.equal([300, 10_000])
  })

  it('a key is not locked out if the key store is restored to an earlier state', async () => {
    await first().changePlan(key.keyId, { plan: 'pro' }, 'alice')
    await send(first())
    const restoredStore = new CountingStore(clock)
    await restoredStore.insert(key, anIssue())
    store.findBySecretHash = (hash) => restoredStore.findBySecretHash(hash)
    clock.advanceSeconds(10)
    for (const replica of replicas) expect(getLimits(await send(replica))).to.deep.equal([60, 1000])
    for (const replica of replicas) expect(getKind(await send(replica))).to.equal('admitted')
  })
})

class CountingStore extends MemoryApiKeyStore {
  queries = 0

  override async findBySecretHash(secretHash: string): Promise<ApiKey | undefined> {
    this.queries += 1
    return super.findBySecretHash(secretHash)
  }
}

function failMissingReplica(): never {
  throw new Error('The replica does not exist')
}

function getKind(admission: Admission): string {
  return admission.kind === 'decided' ? admission.verdict.kind : admission.kind
}

function getLimits(admission: Admission): number[] {
  if (admission.kind !== 'decided') return []
  const { minute, day } = admission.verdict.quota
  return [minute.limit, day.limit]
}

function getRemaining(admission: Admission): number | undefined {
  return admission.kind === 'decided' ? admission.verdict.quota.minute.remaining : undefined
}
