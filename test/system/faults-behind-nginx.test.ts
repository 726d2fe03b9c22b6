import { expect } from 'chai'
import { withEngine } from '../support/engines/no-engine.js'
import { expectCompleteResponse, findSlowestMs } from '../support/load-checks.js'
import { countByStatus, describeLatencies } from '../support/load-generator.js'
import type { CallerHit } from '../support/open-loop-load.js'
import { OpenLoopLoad } from '../support/open-loop-load.js'
import { listAllPets } from '../support/pet-writers.js'
import { issueKey } from '../support/process.js'
import { expectError } from '../support/responses.js'
import { ServiceBehindNginx } from '../support/service-behind-nginx.js'
import { until } from '../support/until.js'

const REPLICAS = 3
/** nginx waits for a response for 4 s (`proxy_read_timeout`). */
const NGINX_GIVES_UP_MS = 4_000
/** The errors that nginx itself returns. */
const NGINX_ERRORS: Readonly<Record<number, string>> = { 502: 'bad_gateway', 504: 'gateway_timeout' }

interface Fault {
  readonly what: string
  readonly begin: () => Promise<unknown>
  /** Whether the load has met the fault. By default, when another 50 requests have responses. */
  readonly isNoticed?: (hits: readonly CallerHit[]) => boolean
  readonly end?: () => Promise<unknown>
  /** The error statuses that requests may get. By default, every request succeeds. */
  readonly errors?: Partial<Record<'GET' | 'POST', number>>
  readonly slowestMs: number
}

describe(`${REPLICAS} replicas behind nginx, under a load that does not wait,`, function () {
  this.timeout(60_000)
  let service: ServiceBehindNginx
  let load: OpenLoopLoad
  let key: string

  before(async function () {
    service = await withEngine(this, () => ServiceBehindNginx.start(REPLICAS))
    ;({ key } = await issueKey(service.settings))
    // Without an Idempotency-Key, a POST that nginx sends twice adds two pets.
    const toPost = (number: number) => ({ path: '/v1/pets', method: 'POST', key, body: { name: `Pet ${number}`, categoryId: 7 } })
    load = new OpenLoopLoad(service.nginx.url, [
      { name: 'reads', everyMs: 40, toRequest: () => ({ path: '/v1/pets?limit=5', key }) },
      { name: 'writes', everyMs: 80, toRequest: toPost },
    ])
  })
  after(async () => {
    await load?.stop()
    await service?.stop()
  })

  const faults: readonly Fault[] = [
    {
      what: 'MongoDB is frozen',
      begin: () => service.mongo.freeze(),
      isNoticed: (hits) => hits.filter(({ status = 0 }) => status >= 500).length >= 50,
      end: () => service.mongo.unfreeze(),
      errors: { GET: 503, POST: 503 },
      slowestMs: 3_000,
    },
    { what: 'Redis is frozen', begin: () => service.redis.freeze(), end: () => service.redis.unfreeze(), slowestMs: 2_000 },
    {
      what: 'a replica is killed',
      begin: () => service.getReplica(0).stop('SIGKILL'),
      end: () => service.startAgain(0),
      errors: { POST: 502 },
      slowestMs: 3_000,
    },
    {
      what: 'a replica is frozen',
      begin: async () => service.getReplica(1).signal('SIGSTOP'),
      isNoticed: (hits) => findSlowestMs(hits) >= NGINX_GIVES_UP_MS,
      end: async () => service.getReplica(1).signal('SIGCONT'),
      errors: { POST: 504 },
      slowestMs: NGINX_GIVES_UP_MS + 2_000,
    },
    { what: 'nginx reloads', begin: () => service.reloadNginx(), slowestMs: 2_000 },
  ]

  for (const { what, begin, isNoticed = hasResponses, end, errors = {}, slowestMs } of faults) {
    describe(`while ${what},`, () => {
      let hits: readonly CallerHit[]

      before(async () => {
        const first = load.hits.length
        await begin()
        await until('the load meets the fault', () => isNoticed(load.hits.slice(first)), 15_000)
        await end?.()
        await service.untilHealthy()
        const continuing = load.hits.length
        await until('the load continues', () => load.hits.length >= continuing + 50, 15_000)
        hits = load.hits.slice(first)
        console.error(`Figures: ${what}: ${JSON.stringify(countByStatus(hits))}, ${describeLatencies(hits)}`)
      })

      after(async () => {
        await Promise.all([service.mongo.start(), service.redis.start()])
        for (const replica of service.replicas) replica.signal('SIGCONT')
      })

      for (const [method, success] of [
        ['GET', 200],
        ['POST', 201],
      ] as const) {
        const error = errors[method]
        it(`every ${method} succeeds${error === undefined ? '' : ` or gets ${error}`}`, () => {
          const statuses = countByStatus(hits.filter((hit) => hit.method === method))
          expect([success, error], JSON.stringify(service.nginx.errors.slice(-5))).to.include.members(Object.keys(statuses).map(Number))
        })
      }

      it('every response is complete, including the errors of nginx', () => {
        for (const hit of hits) {
          const { status = 0, headers, body: text } = hit
          const code = NGINX_ERRORS[status]
          if (code === undefined) expectCompleteResponse(hit)
          else expectError({ status, headers, text }, status, code)
        }
      })

      it(`no response takes longer than ${slowestMs} ms`, () => {
        expect(findSlowestMs(hits)).to.be.below(slowestMs)
      })
    })
  }

  describe('afterwards,', () => {
    it('every acknowledged pet is there, and no POST added two pets', async () => {
      await load.stop()
      const pets = await listAllPets(service.getReplica(0), key)
      const acknowledged = load.hits.filter(({ status }) => status === 201).map(({ body }) => JSON.parse(body) as unknown)
      expect(pets).to.include.deep.members(acknowledged)
      expect(new Set(pets.map(({ name }) => name))).to.have.property('size', pets.length)
    })
  })
})

function hasResponses({ length }: readonly CallerHit[]): boolean {
  return length >= 50
}
