import { expect } from 'chai'
import { RedisFailedAuthentications } from '../../../src/adapters/redis/redis-failed-authentications.js'
import { someBanRules, someQuotaRules } from '../../support/builders.js'
import { MovableClock } from '../../support/movable-clock.js'
import type { RedisCluster } from '../../support/redis-cluster.js'
import { aRedisCluster } from '../../support/redis-cluster.js'
import type { RedisReplica } from '../../support/redis-replica.js'
import { aRedisReplica, CLUSTER_KEYS, untilUp } from '../../support/redis-replica.js'
import { readUsed } from '../../support/read-used.js'
import { takeOne } from '../../support/take-one.js'
import { until } from '../../support/until.js'
import { countAdmitted, requireCharge, inSequence, inParallel } from '../../support/verdicts.js'

const FREE = someQuotaRules()

describe('a Redis Cluster of three nodes', function () {
  this.timeout(60_000)
  let cluster: RedisCluster
  let clock: MovableClock
  let replica: RedisReplica
  let other: RedisReplica

  before(async function () {
    cluster = await aRedisCluster(this, ['--cluster-require-full-coverage', 'no'])
  })

  beforeEach(async () => {
    for (const node of cluster.nodes) await cluster.send(node, 'FLUSHALL')
    clock = new MovableClock()
    replica = await aRedisReplica(cluster.url, { clock, hasNoTimeout: true })
    other = await aRedisReplica(cluster.url, { clock, hasNoTimeout: true })
    await Promise.all([untilUp(replica), untilUp(other)])
  })

  afterEach(() => Promise.all([replica.close(), other.close()]))

  after(() => cluster?.stop())

  it('decides exactly for keys on all nodes, on two replicas at the same time', async () => {
    const admitted = await inParallel(15, async (key) => {
      const both = await inParallel(80, (index) => takeOne(index % 2 ? replica.quotas : other.quotas, `key_${key}`, FREE))
      return countAdmitted(both)
    })
    expect(new Set(admitted)).to.deep.equal(new Set([60]))
    const sizes = await Promise.all(cluster.nodes.map((node) => cluster.send(node, 'DBSIZE')))
    for (const size of sizes) expect(size).to.be.above(1)
    expect([replica, other].map(hasStayedUp)).to.deep.equal([true, true])
  })

  it('refunds, unbans, announces and shows usage for keys on all nodes', async () => {
    const rules = someQuotaRules({ limits: { minute: 2, day: 10 }, ban: someBanRules({ minStrikes: 2, graceMs: 0 }) })
    await inParallel(30, async (index) => {
      const keyId = `key_${index}`
      const first = await takeOne(replica.quotas, keyId, rules)
      expect((await replica.quotas.refund(keyId, requireCharge(first), rules)).minute.remaining).to.equal(2)
    })
    for (let count = 0; count < 5; count++) {
      await inParallel(30, (index) => takeOne(replica.quotas, `key_${index}`, rules))
      clock.advanceMs(1)
    }
    await inParallel(30, async (index) => {
      const keyId = `key_${index}`
      const usage = await other.control.usage(keyId, rules)
      expect([readUsed(usage), usage.banLevel]).to.deep.equal([[2, 2], 1])
      expect(await other.control.unban(keyId)).to.equal('lifted')
      await other.control.announce(keyId, 2)
      expect(await replica.quotas.take(keyId, rules, { version: 1 })).to.deep.equal({ kind: 'stale', knownVersion: 2 })
    })
    expect([replica, other].map(hasStayedUp)).to.deep.equal([true, true])
  })

  it('counts failed authentications of IP addresses on all nodes, for two replicas together', async () => {
    const [first, second] = [replica, other].map(({ connection }) => new RedisFailedAuthentications(connection, 5, clock))
    await inParallel(30, async (index) => {
      const address = `192.0.2.${index}`
      await inParallel(4, (count) => (count % 2 ? first : second)?.count(address) ?? Promise.reject(new Error('No port')))
      expect((await first?.peek(address))?.remaining).to.equal(1)
      expect((await second?.count(`2001:db8:0:${index}::/64`))?.quota.remaining).to.equal(4)
    })
    expect([replica, other].map(hasStayedUp)).to.deep.equal([true, true])
  })

  for (const nodeIndex of [0, 1, 2])
    it(`while node ${nodeIndex + 1} is down, serves its keys within their limits, keeps the breaker closed for the shards of other nodes, and recovers`, async () => {
      const killedNode = cluster.nodes[nodeIndex]
      if (!killedNode) throw new Error('No node')
      await replica.close()
      replica = await aRedisReplica(cluster.url, { clock })
      await untilUp(replica)
      const keysOn = new Map<string, string>()
      for (let index = 0; keysOn.size < 3; index++)
        keysOn.set((await cluster.findNode(CLUSTER_KEYS.quota(`key_${index}`))).url, `key_${index}`)
      const keyOfKilledNode = keysOn.get(killedNode.url) ?? ''
      await inSequence(10, () => takeOne(replica.quotas, keyOfKilledNode, FREE))

      await killedNode.kill()
      try {
        let [requests, admitted, isolated] = [0, 10, 0]
        const isClosed = (keyId: string) => replica.connection.breaker.isClosed(CLUSTER_KEYS.getShard(keyId))
        const endMs = performance.now() + 4_000
        while (performance.now() < endMs) {
          for (const keyId of keysOn.values()) {
            const verdict = await takeOne(replica.quotas, keyId, FREE)
            if (keyId === keyOfKilledNode && 'charge' in verdict) admitted += 1
            if (keyId !== keyOfKilledNode) expect(isClosed(keyId), keyId).to.equal(true)
          }
          requests += 1
          if (!isClosed(keyOfKilledNode)) isolated += 1
          await new Promise((resolve) => setImmediate(resolve))
        }
        console.error(`      a node killed: ${admitted} of ${requests} admitted, ${replica.changes.length - 1} state changes`)
        expect(admitted).to.equal(60)
        expect(isolated).to.be.above(requests / 2)
        expect(replica.changes).to.deep.equal([true, false])
      } finally {
        await killedNode.start()
      }
      await until(
        'the cluster is whole again',
        async () => String(await cluster.send(killedNode, 'CLUSTER', 'INFO')).includes('cluster_state:ok'),
        20_000,
      )
      await until('the node decides requests again', async () => {
        await untilUp(replica)
        await takeOne(replica.quotas, keyOfKilledNode, FREE)
        return Number(await cluster.send(killedNode, 'EXISTS', CLUSTER_KEYS.quota(keyOfKilledNode))) === 1
      })
    })
})

/** A start on a busy machine may report first that Redis is unavailable. */
function hasStayedUp({ changes }: RedisReplica): boolean {
  return changes.at(-1) === true && changes.lastIndexOf(false) < changes.indexOf(true)
}
