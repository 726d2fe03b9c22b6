import { expect } from 'chai'
import { useDatabases } from '../support/engines/use-databases.js'
import { describeLatencies } from '../support/load-generator.js'
import type { Nginx } from '../support/nginx.js'
import { startNginx } from '../support/nginx.js'
import { listAllPets } from '../support/pet-writers.js'
import type { ServiceProcess, Settings } from '../support/process.js'
import { endProcesses, startService } from '../support/process.js'
import { freeKeyWithTime, sharedSettings, startServices } from '../support/replicas.js'
import { readRateLimitFields } from '../support/responses.js'
import type { SentRequest } from '../support/steady-load.js'
import { SteadyLoad } from '../support/steady-load.js'
import { until } from '../support/until.js'

/** Ten with `npm run test:long`. */
const RUNS = process.env['LONG'] === '1' ? 10 : 1
const AMPLE = { minute: 1_000_000, day: 1_000_000 }
/** Used up early in each run. */
const SMALL = { minute: 1_000, day: 200 }
const LOAD = { clientsEach: 5, everyMs: 50 }

describe('replicas behind nginx, under steady load,', function () {
  this.timeout(90_000)
  let settings: Settings
  let replicas: ServiceProcess[]
  let nginx: Nginx
  let addedPets = 0

  after(async () => {
    await nginx?.stop()
    await endProcesses()
  })
  const databases = useDatabases()
  before(async function () {
    settings = {
      ...sharedSettings(databases.mongo, databases.redis.url),
      TRUSTED_PROXY_HOPS: '1',
      DRAIN_DELAY_MS: '500',
      LOG_LEVEL: 'warn',
    }
    replicas = await startServices(3, settings)
    nginx = await startNginx(this, toUrls(replicas))
  })

  for (let run = 1; run <= RUNS; run += 1) {
    it(`three restart one after the other without a failed request and with exact quotas (run ${run} of ${RUNS})`, () =>
      expectNoFailure(`restarts, run ${run}`, async () => {
        for (const [index, { url, adminUrl }] of replicas.entries()) {
          expect(await replicas[index]?.stop()).to.equal(0)
          replicas[index] = await startService({ ...settings, PORT: new URL(url).port, ADMIN_PORT: new URL(adminUrl).port })
          await untilAllServe()
        }
      }))

    it(`three become five, and then two, without a failed request and with exact quotas (run ${run} of ${RUNS})`, () =>
      expectNoFailure(`scaling, run ${run}`, async () => {
        replicas.push(...(await startServices(2, settings)))
        await nginx.reload(toUrls(replicas))
        await untilAllServe()

        const removed = replicas.splice(0, 3)
        await nginx.reload(toUrls(replicas))
        expect(await Promise.all(removed.map((replica) => replica.stop()))).to.deep.equal([0, 0, 0])

        replicas.push(await startService(settings))
        await nginx.reload(toUrls(replicas))
      }))
  }

  /** Resolves when each replica has responded to one more request. */
  async function untilAllServe(): Promise<void> {
    const seen = nginx.accessLog.length
    const serving = () => new Set(nginx.accessLog.slice(seen).map((line) => line.replicas))
    await until('every replica serves requests', () => replicas.every(({ url }) => serving().has(new URL(url).host)), 10_000)
  }

  async function expectNoFailure(what: string, change: () => Promise<void>): Promise<void> {
    const [first, second, small] = await Promise.all([AMPLE, AMPLE, SMALL].map((limits) => freeKeyWithTime(settings, 1, limits)))
    if (!first || !second || !small) throw new Error('There are three keys')
    const load = new SteadyLoad(
      nginx.url,
      [first, second, small].map(({ key }) => key),
      LOAD,
    )
    try {
      await change()
    } finally {
      await load.stop()
    }
    const { requests } = load
    const [replica] = replicas
    if (!replica) throw new Error('There is no replica')
    const failed = requests.filter((request) => !isExpected(request, small.key))
    console.error(`Figures: ${what}: ${requests.length} requests, ${failed.length} failed, ${describeLatencies(requests)}`)
    const description = failed.map(({ method, response }) => `${method}: ${response?.status} ${response?.text}`).join('\n')
    addedPets += requests.filter((request) => request.method === 'POST' && isAdmitted(request)).length
    expect(description, nginx.errors.join('\n')).to.equal('')

    const admitted = (key: string) => requests.filter((request) => request.key === key && isAdmitted(request)).length
    expect(admitted(small.key)).to.equal(SMALL.day)
    for (const { key } of [first, second]) {
      const { day } = readRateLimitFields(await replica.send('/v1/pets?limit=1', { key }))
      expect(AMPLE.day - (day?.remaining ?? 0)).to.equal(admitted(key) + 1)
    }
    expect(await listAllPets(replica, first.key)).to.have.length(addedPets)
  }
})

function isAdmitted({ method, response }: SentRequest): boolean {
  return response?.status === (method === 'POST' ? 201 : 200)
}

function isExpected(request: SentRequest, exhaustedKey: string): boolean {
  return isAdmitted(request) || (request.key === exhaustedKey && request.response?.status === 429)
}

function toUrls(replicas: readonly ServiceProcess[]): string[] {
  return replicas.map(({ url }) => url)
}
