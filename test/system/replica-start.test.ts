import { expect } from 'chai'
import { freePort } from '../support/engines/free-port.js'
import { useDatabases } from '../support/engines/use-databases.js'
import type { FaultInjectionProxy } from '../support/fault-injection-proxy.js'
import { startFaultInjectionProxy } from '../support/fault-injection-proxy.js'
import { countByStatus, LoadGenerator } from '../support/load-generator.js'
import { endProcesses, startService } from '../support/process.js'
import { freeKeyWithTime, sharedSettings } from '../support/replicas.js'

const DAY_LIMIT = 100
/** Shorter than the timeout of a decision, but connecting takes several round trips. */
const SLOW_REDIS_MS = 40

describe('a replica that starts while clients send it requests', () => {
  let slowRedis: FaultInjectionProxy

  after(async () => {
    await endProcesses()
    await slowRedis?.close()
  })
  const databases = useDatabases()
  before(async () => {
    slowRedis = await startFaultInjectionProxy(databases.redis.url)
    slowRedis.delayMs = SLOW_REDIS_MS
  })

  it('grants no request of a quota that other replicas have used up, because it listens only when it has reached Redis', async () => {
    const { mongo, redis } = databases
    const settings = { ...sharedSettings(mongo, redis.url), EXPECTED_REPLICAS: '2' }
    const first = await startService(settings)
    const { key } = await freeKeyWithTime(settings, 1, { minute: 2 * DAY_LIMIT, day: DAY_LIMIT })
    const used = new LoadGenerator([first.url], { key: () => key, clientsEach: 4, atMost: DAY_LIMIT })
    await used.done
    expect(countByStatus(used.hits)).to.deep.equal({ 200: DAY_LIMIT })

    const port = await freePort()
    const load = new LoadGenerator([`http://127.0.0.1:${port}`], { key: () => key, clientsEach: 4, everyMs: 1 })
    await startService({ ...settings, REDIS_URL: `redis://${slowRedis.address}${new URL(redis.url).pathname}`, PORT: `${port}` })
    await load.stop()
    const { 0: refused, ...responses } = countByStatus(load.hits)
    expect(refused).to.be.above(0)
    expect(responses).to.have.all.keys('429')
  })
})
