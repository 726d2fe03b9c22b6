import { AssertionError, expect } from 'chai'
import { readQuotaHeaders } from '../support/responses.js'
import { useDatabases } from '../support/engines/use-databases.js'
import type { Hit } from '../support/load-generator.js'
import { countByStatus, LoadGenerator, describeLatencies } from '../support/load-generator.js'
import type { ServiceProcess, Settings } from '../support/process.js'
import { endProcesses } from '../support/process.js'
import { freeKeyWithTime, getMinuteNumber, redisChanges, sharedSettings, startReplicas, toUsage } from '../support/replicas.js'
import type { UnionReplicas } from '../support/union-replicas.js'
import { startUnionReplicas } from '../support/union-replicas.js'

const REPLICAS = 8
const CLIENTS_EACH = 32
const REQUESTS = 12_000
const FREE_LIMIT = 60
/** Ten with `npm run test:long`. */
const RUNS = process.env['LONG'] === '1' ? 10 : 2
const MAX_ATTEMPTS = 3
/** Seconds that are left in the minute when a run starts. */
const SECONDS_FOR_A_RUN = 40

/** The result of `REQUESTS` requests with one free key within one minute. */
interface Outcome {
  readonly responses: Readonly<Record<number, number>>
  readonly dayUsed: number
}

/** Applied to the service and to the control. */
function expectExactlyOneMinuteServed(outcome: Outcome): void {
  expect(outcome).to.deep.equal({ responses: { 200: FREE_LIMIT, 429: REQUESTS - FREE_LIMIT }, dayUsed: FREE_LIMIT })
}

describe(`${REPLICAS} replicas that get ${REQUESTS} requests with one free key within a minute, from ${CLIENTS_EACH} clients each,`, function () {
  this.timeout(120_000)
  const databases = useDatabases()

  async function sendAll(what: string, urls: readonly string[], key: string): Promise<readonly Hit[]> {
    const startMs = performance.now()
    const { done, hits } = new LoadGenerator(urls, { key: () => key, clientsEach: CLIENTS_EACH, atMost: REQUESTS })
    await done
    const tookMs = performance.now() - startMs
    expect(new Set(hits.map(({ url }) => url))).to.have.property('size', REPLICAS)
    console.error(`Figures: ${what}: ${hits.length} requests in ${Math.round(tookMs)} ms, ${describeLatencies(hits)}`)
    return hits
  }

  describe('of the service', () => {
    let settings: Settings
    let replicas: ServiceProcess[]

    before(async () => {
      settings = sharedSettings(databases.mongo, databases.redis.url)
      replicas = await startReplicas(REPLICAS, settings)
    })
    after(endProcesses)

    for (let run = 1; run <= RUNS; run += 1) {
      it(`admit exactly ${FREE_LIMIT}, and charge the day exactly ${FREE_LIMIT} (run ${run} of ${RUNS})`, async () => {
        for (let attempt = 1; ; attempt += 1) {
          const { outcome, left, timeouts } = await measure(`run ${run}`)
          // The machine is too slow for this test if Redis times out, after which a replica decides locally, or if MongoDB does (503).
          const isTooSlow = timeouts > 0 || outcome.responses[503] !== undefined
          const isDisturbed = isTooSlow && (left.length !== FREE_LIMIT || outcome.dayUsed !== FREE_LIMIT)
          if (isDisturbed && attempt < MAX_ATTEMPTS) continue
          expectExactlyOneMinuteServed(outcome)
          expect(left).to.deep.equal(Array.from({ length: FREE_LIMIT }, (_, index) => index))
          return
        }
      })
    }

    async function measure(what: string) {
      const { key, keyId } = await freeKeyWithTime(settings, SECONDS_FOR_A_RUN)
      const minute = getMinuteNumber(keyId)
      const unavailableBefore = await timesUnavailable()
      const urls = replicas.map(({ url }) => url)
      const hits = await sendAll(what, urls, key)
      const { day } = await toUsage(keyId, settings)
      expect(getMinuteNumber(keyId), 'the machine is too slow for a run within one minute').to.equal(minute)

      const timeouts = (await timesUnavailable()) - unavailableBefore
      const outcome = { responses: countByStatus(hits), dayUsed: day.used }
      console.error(`Figures: ${what}: ${JSON.stringify(outcome)}, ${timeouts} times`)
      const served = hits.filter(({ status }) => status === 200)
      return { outcome, left: served.map((hit) => readQuotaHeaders(hit).remaining).toSorted((one, other) => one - other), timeouts }
    }

    async function timesUnavailable(): Promise<number> {
      const changes = await Promise.all(replicas.map(redisChanges))
      return changes.reduce((sum, { down }) => sum + down, 0)
    }
  })

  describe('of the stock RateLimiterUnion (the control),', () => {
    let control: UnionReplicas

    before(async () => {
      control = await startUnionReplicas(REPLICAS, databases.redis.url)
    })
    after(() => control?.stop())

    it('fail the same check: they admit the same number, but charge the day for every request', async () => {
      const hits = await sendAll(`control on ${REPLICAS} replicas`, control.urls, 'control')
      const outcome = { responses: countByStatus(hits), dayUsed: await control.dayUsed('control') }
      console.error(`Figures: control: ${JSON.stringify(outcome)}`)
      expect(() => expectExactlyOneMinuteServed(outcome)).to.throw(AssertionError)
      expect(outcome.responses[200]).to.equal(FREE_LIMIT)
      expect(outcome.dayUsed).to.equal(REQUESTS)
    })
  })
})
