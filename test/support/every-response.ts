import { expect } from 'chai'
import { SAMPLE_PETS } from '../../src/adapters/memory/sample-data.js'
import { expectError, readRateLimitFields, readQuotaHeaders } from './responses.js'
import type { TestApi } from './api.js'
import type { Swept } from './sweep.js'
import { sweep, sweepFailures, sweepRemoved } from './sweep.js'
import { UnreliablePetStore } from './unreliable-pet-store.js'

/** Sweeps over the service that `open` starts, on these pets, and checks what no answer may lack. */
export function describeEveryResponse(where: string, open: (context: Mocha.Context, pets: UnreliablePetStore) => Promise<TestApi>): void {
  describe(`every answer under /v1, ${where}, whatever the route, the caller and the problem,`, () => {
    let api: TestApi
    let swept: readonly Swept[]

    before(async function () {
      const pets = new UnreliablePetStore(SAMPLE_PETS)
      api = await open(this, pets)
      this.timeout(60_000)
      swept = [...(await sweep(api)), ...(await sweepFailures(api, pets)), ...(await sweepRemoved(api))]
    })
    after(() => api?.stop())

    function forEach(check: (one: Swept) => void): void {
      for (const one of swept) {
        try {
          check(one)
        } catch (cause) {
          throw new Error(`${one.method} ${one.path} with ${one.caller} (${one.answer.status}): ${(cause as Error).message}`, { cause })
        }
      }
    }

    it('is looked at: the sweep meets every kind of caller and status', () => {
      const statuses = [...new Set(swept.map(({ answer }) => answer.status))].toSorted((a, b) => a - b)
      expect(statuses).to.deep.equal([200, 201, 204, 400, 401, 404, 405, 406, 410, 413, 415, 417, 422, 429, 500, 503])
      const codes = new Set(swept.flatMap(({ answer }) => (answer.json as { code?: string } | undefined)?.code ?? []))
      expect([...codes]).to.include.members(['missing_api_key', 'invalid_api_key', 'daily_quota_exceeded', 'key_temporarily_banned'])
    })

    it('carries X-RateLimit-Limit, -Remaining and -Reset: whole numbers, 0 to the limit, and a time to come', () => {
      forEach(({ answer, atMs }) => {
        const { limit, remaining, resetSeconds } = readQuotaHeaders(answer)
        expect(limit).to.be.at.least(1)
        expect(remaining).to.be.within(0, limit)
        expect(resetSeconds * 1000).to.be.above(atMs)
      })
    })

    it('carries RateLimit-Policy and RateLimit, of which one window agrees with the triple', () => {
      forEach(({ answer, atMs }) => {
        const { limit, remaining, resetSeconds } = readQuotaHeaders(answer)
        const resetInSeconds = Math.ceil(resetSeconds - atMs / 1000)
        const windows = Object.values(readRateLimitFields(answer))
        expect(
          windows.some((each) => each.quota === limit && each.remaining === remaining && each.resetInSeconds === resetInSeconds),
        ).to.equal(true)
      })
    })

    it('carries a request id of its own', () => {
      const ids = swept.map(({ answer }) => answer.headers['x-request-id'])
      forEach(({ answer }) => expect(answer.headers['x-request-id']).to.match(/^[A-Za-z0-9._-]{1,64}$/))
      expect(new Set(ids)).to.have.property('size', swept.length)
    })

    it('has exactly code, message and status as its body when it is an error, and the status is that of the answer', () => {
      forEach(({ method, answer }) => {
        if (answer.status < 400) return
        expect(answer.headers['content-type']).to.equal('application/json')
        if (method === 'HEAD') expect(answer.text).to.equal('')
        else expectError(answer, answer.status, (answer.json as { code: string }).code)
      })
    })

    it('has a JSON body that parses when it is a success, but for 204', () => {
      forEach(({ method, answer }) => {
        if (answer.status >= 400) return
        const isEmpty = method === 'HEAD' || method === 'OPTIONS'
        expect(answer.text === '').to.equal(isEmpty)
        if (!isEmpty) expect(answer.json).to.be.an(answer.status === 201 || answer.text.startsWith('{') ? 'object' : 'array')
      })
    })

    it('is not to be cached, sniffed, framed or run', () => {
      forEach(({ answer }) => {
        expect(answer.headers).to.include({
          'cache-control': 'no-store',
          'x-content-type-options': 'nosniff',
          'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
          'referrer-policy': 'no-referrer',
        })
        expect(answer.headers).to.not.have.any.keys('x-powered-by', 'server', 'set-cookie', 'etag', 'strict-transport-security')
      })
    })

    it('carries what its status demands: WWW-Authenticate, Allow, Retry-After', () => {
      forEach(({ answer: { status, headers } }) => {
        expect('www-authenticate' in headers).to.equal(status === 401)
        expect('allow' in headers).to.equal(status === 204 || status === 405)
        expect('retry-after' in headers).to.equal(status === 429 || status === 503)
      })
    })

    it('is 401 without a good key, and 429 with one that is used up or banned, whatever is asked for but OPTIONS', () => {
      const wanted: Readonly<Record<string, number>> = {
        'no key': 401,
        'a bad key': 401,
        'a key used up': 429,
        'a banned key': 429,
        'a revoked key': 401,
      }
      forEach(({ caller, method, answer }) => {
        if (wanted[caller] !== undefined && method !== 'OPTIONS') expect(answer.status).to.equal(wanted[caller])
      })
    })
  })
}
