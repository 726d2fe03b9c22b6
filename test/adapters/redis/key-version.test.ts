import { expect } from 'chai'
import { CachedApiKeyVerifier } from '../../../src/adapters/memory/cached-api-key-verifier.js'
import { MemoryApiKeyStore } from '../../../src/adapters/memory/memory-api-key-store.js'
import { MemoryFailedAuthentications } from '../../../src/adapters/memory/memory-failed-authentications.js'
import { CryptoApiKeySecrets } from '../../../src/adapters/node/crypto-api-key-secrets.js'
import type { ApiKey } from '../../../src/core/api-key.js'
import type { Admission } from '../../../src/core/use-cases/admit.js'
import { makeAdmit } from '../../../src/core/use-cases/admit.js'
import { makeAuthenticate } from '../../../src/core/use-cases/authenticate.js'
import { makeChangeApiKeyPlan } from '../../../src/core/use-cases/change-api-key-plan.js'
import { makeRevokeApiKey } from '../../../src/core/use-cases/revoke-api-key.js'
import { makeShowApiKey } from '../../../src/core/use-cases/show-api-key.js'
import { makeUnbanApiKey } from '../../../src/core/use-cases/unban-api-key.js'
import { anApiKey, somePlans } from '../../support/builders.js'
import type { OwnEngine } from '../../support/engines/own-engine.js'
import { anOwnRedis } from '../../support/engines/redis-engine.js'
import { MovableClock } from '../../support/movable-clock.js'
import type { RedisReplica } from '../../support/redis-replica.js'
import { aRedisReplica, Onlooker, untilUnavailable } from '../../support/redis-replica.js'
import { until } from '../../support/until.js'
import { inSequence, times } from '../../support/verdicts.js'

const ADDRESS = '192.0.2.1'

describe('a change of a key, on replicas that remember its record', function () {
  this.timeout(20_000)
  let redis: OwnEngine
  let onlooker: Onlooker
  let clock: MovableClock
  let store: CountingStore
  let replicas: Replica[]
  let key: ApiKey
  let secret: string

  before(async function () {
    redis = await anOwnRedis(this)
  })

  beforeEach(async () => {
    onlooker = new Onlooker(redis.url)
    await onlooker.client.flushall()
    clock = new MovableClock()
    store = new CountingStore(clock)
    const { secret: made, ...publicPart } = new CryptoApiKeySecrets().generate()
    secret = made
    key = anApiKey('one', publicPart)
    await store.insert(key)
    replicas = await times(2, () => aReplica())
  })

  afterEach(async () => {
    await redis.start()
    await Promise.all(replicas.map(({ redis: replica }) => replica.close()))
    onlooker.close()
  })

  after(() => redis?.stop())

  async function aReplica() {
    const replica = await aRedisReplica(redis.url, { clock, isPatient: true, replicas: 2 })
    const failedAuthentications = new MemoryFailedAuthentications(1_000, clock)
    const secrets = new CryptoApiKeySecrets()
    const apiKeyVerifier = new CachedApiKeyVerifier({ secrets, apiKeyStore: store, failedAuthentications, clock })
    const authenticate = makeAuthenticate({ apiKeyVerifier, failedAuthentications })
    const plans = somePlans()
    const ports = { apiKeyStore: store, quotaControl: replica.control, plans, clock }
    let calls = 0
    const take = replica.connection.quotaHash.take.bind(replica.connection.quotaHash)
    replica.connection.quotaHash.take = (...args) => {
      calls += 1
      return take(...args)
    }
    return {
      redis: replica,
      admit: makeAdmit({ authenticate, apiKeyVerifier, quotas: replica.quotas, plans }),
      calls: () => calls,
      changePlan: makeChangeApiKeyPlan(ports),
      revoke: makeRevokeApiKey(ports),
      unban: makeUnbanApiKey({ ...ports, showApiKey: makeShowApiKey(ports) }),
    }
  }
  type Replica = Awaited<ReturnType<typeof aReplica>>

  const ask = ({ admit }: Replica) => admit({ secret, address: ADDRESS })
  const [first, second] = [() => replicas[0] ?? failed(), () => replicas[1] ?? failed()]

  it('of plan holds for the very next request on each replica, and what was used stays used', async () => {
    for (const replica of replicas) expect(limitsOf(await ask(replica))).to.deep.equal([60, 1000])
    expect(await first().changePlan(key.keyId, { plan: 'pro' })).to.include({ takesEffect: 'at once' })
    const answers = await inSequence(2, (index) => ask(replicas[index] ?? failed()))
    expect(answers.map(limitsOf)).to.deep.equal([
      [300, 10_000],
      [300, 10_000],
    ])
    expect(answers.map(remainingOf)).to.deep.equal([297, 296])
    expect((await onlooker.hash(key.keyId))['e']).to.equal(4)
  })

  it('to lower limits refuses at once on a replica that had much left', async () => {
    await first().changePlan(key.keyId, { plan: 'business' })
    await inSequence(70, (index) => ask(replicas[index % 2] ?? failed()))
    await second().changePlan(key.keyId, { plan: 'free' })
    for (const replica of replicas) {
      const answer = await ask(replica)
      expect([kindOf(answer), ...limitsOf(answer)]).to.deep.equal(['exhausted', 60, 1000])
    }
  })

  it('by revocation makes the very next request on each replica one without a valid key, and charges nothing', async () => {
    for (const replica of replicas) await ask(replica)
    expect(await first().revoke(key.keyId)).to.include({ takesEffect: 'at once' })
    for (const replica of replicas) expect((await ask(replica)).kind).to.equal('invalid')
    expect((await onlooker.hash(key.keyId))['e']).to.equal(2)
    const asked = store.queries
    for (const replica of replicas) expect((await ask(replica)).kind).to.equal('invalid')
    expect(store.queries - asked, 'the revoked record is not remembered as a valid one').to.be.at.most(2)
  })

  it('that happens in the middle of 200 requests on both replicas leaves none served by the old record afterwards', async () => {
    for (const replica of replicas) await ask(replica)
    let isChanged = false
    const late: number[][] = []
    await times(4, async (worker) => {
      for (let count = 0; count < 50; count++) {
        const wasChanged = isChanged
        const answer = await ask(replicas[worker % 2] ?? failed())
        if (wasChanged) late.push(limitsOf(answer))
        if (worker === 0 && count === 10) {
          await first().changePlan(key.keyId, { plan: 'business' })
          isChanged = true
        }
      }
    })
    expect(late.length).to.be.above(50)
    expect([...new Set(late.map(String))]).to.deep.equal(['1000,100000'])
  })

  it('lifts a ban for the very next request on each replica, though both were refusing the key from memory', async () => {
    await inSequence(61, () => ask(first()))
    clock.advanceMs(1_001)
    for (let count = 0; count < 100; count++) for (const replica of replicas) await ask(replica)
    expect(kindOf(await ask(second()))).to.equal('banned')
    await untilListening(replicas, onlooker)
    const calls = [first().calls(), second().calls()]
    for (const replica of replicas) expect(kindOf(await ask(replica))).to.equal('banned')
    expect([first().calls(), second().calls()], 'no call: from memory').to.deep.equal(calls)

    expect(await second().unban(key.keyId)).to.include({ outcome: 'lifted' })
    // Its minute is used up still: what it waits for is the minute, and no longer the ban.
    await until('it is no longer banned anywhere', async () =>
      (await inSequence(2, (index) => ask(replicas[index] ?? failed()))).every((answer) => kindOf(answer) === 'exhausted'),
    )
  })

  it('reaches a key that hammers and is refused from memory without any time passing', async () => {
    for (let count = 0; count < 100; count++) for (const replica of replicas) await ask(replica)
    await untilListening(replicas, onlooker)
    await first().changePlan(key.keyId, { plan: 'pro' })
    await until('both serve it', async () =>
      (await inSequence(2, (index) => ask(replicas[index] ?? failed()))).every((answer) => kindOf(answer) === 'admitted'),
    )
  })

  it('reaches such a key within a second even when nobody is told of it', async () => {
    for (let count = 0; count < 100; count++) for (const replica of replicas) await ask(replica)
    for (const { redis: replica } of replicas) replica.connection.keyChanges.close()
    await first().changePlan(key.keyId, { plan: 'pro' })
    clock.advanceMs(1_000)
    for (const replica of replicas) expect(kindOf(await ask(replica))).to.equal('admitted')
  })

  it('costs one more call and one query on each replica, once; where nothing changed a request is one call and none', async () => {
    for (const replica of replicas) await ask(replica)
    const before = [first().calls(), store.queries]
    await inSequence(20, () => ask(first()))
    expect([first().calls(), store.queries]).to.deep.equal([(before[0] ?? 0) + 20, before[1]])
    await second().changePlan(key.keyId, { plan: 'pro' })
    const then = [first().calls(), store.queries]
    await inSequence(20, () => ask(first()))
    expect([first().calls(), store.queries]).to.deep.equal([(then[0] ?? 0) + 21, (then[1] ?? 0) + 1])
  })

  it('that was made while Redis was away is told as such, and holds when the record is read again', async () => {
    for (const replica of replicas) await ask(replica)
    await redis.kill()
    for (const { redis: replica } of replicas) await untilUnavailable(replica)
    expect(await first().changePlan(key.keyId, { plan: 'pro' })).to.include({ takesEffect: 'within 10 s' })
    expect(limitsOf(await ask(first()))).to.deep.equal([60, 1000])
    clock.advanceSeconds(10)
    for (const replica of replicas) expect(limitsOf(await ask(replica))).to.deep.equal([300, 10_000])
  })

  it('is kept from no replica by a store of keys that was put back to an earlier state', async () => {
    await first().changePlan(key.keyId, { plan: 'pro' })
    await ask(first())
    const older = new CountingStore(clock)
    await older.insert(key)
    store.findBySecretHash = (hash) => older.findBySecretHash(hash)
    clock.advanceSeconds(10)
    for (const replica of replicas) expect(limitsOf(await ask(replica))).to.deep.equal([60, 1000])
    for (const replica of replicas) expect(kindOf(await ask(replica))).to.equal('admitted')
  })
})

class CountingStore extends MemoryApiKeyStore {
  queries = 0

  override async findBySecretHash(secretHash: string): Promise<ApiKey | undefined> {
    this.queries += 1
    return super.findBySecretHash(secretHash)
  }
}

function failed(): never {
  throw new Error('There is no such replica')
}

function kindOf(admission: Admission): string {
  return admission.kind === 'decided' ? admission.verdict.kind : admission.kind
}

function limitsOf(admission: Admission): number[] {
  if (admission.kind !== 'decided') return []
  const { minute, day } = admission.verdict.quota
  return [minute.limit, day.limit]
}

function remainingOf(admission: Admission): number | undefined {
  return admission.kind === 'decided' ? admission.verdict.quota.minute.remaining : undefined
}

async function untilListening(replicas: readonly { redis: RedisReplica }[], { client }: Onlooker): Promise<void> {
  await until('all listen', async () => Number((await client.pubsub('NUMSUB', 'petstore:key-changed'))[1]) >= replicas.length)
}
