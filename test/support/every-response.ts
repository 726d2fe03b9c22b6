import { expect } from 'chai'
import { SAMPLE_PETS } from '../../src/adapters/memory/sample-data.js'
import { expectError, readRateLimitFields, readQuotaHeaders } from './responses.js'
import type { TestApi } from './api.js'
import type { SweepResult } from './sweep.js'
import { sweep, sweepFailures, sweepRemoved } from './sweep.js'
import { UnreliablePetStore } from './unreliable-pet-store.js'

/** Sends many kinds of requests to the service that `open` starts with `pets`, and checks what every response must contain. */
export function describeEveryResponse(where: string, open: (context: Mocha.Context, pets: UnreliablePetStore) => Promise<TestApi>): void {
  describe(`every response under /v1, ${where},`, () => {
    let api: TestApi
    let results: readonly SweepResult[]

    before(async function () {
      const pets = new UnreliablePetStore(SAMPLE_PETS)
      api = await open(this, pets)
      this.timeout(60_000)
      results = [...(await sweep(api)), ...(await sweepFailures(api, pets)), ...(await sweepRemoved(api))]
    })
    after(() => api?.stop())

    function forEach(check: (request: SweepResult) => void): void {
      for (const request of results) {
        try {
          check(request)
        } catch (cause) {
          const { method, path, caller, response } = request
          throw new Error(`${method} ${path} with ${caller} (${response.status}): ${(cause as Error).message}`, { cause })
        }
      }
    }

    it('is checked: the requests cover every status and the errors of every kind of caller', () => {
      const statuses = [...new Set(results.map(({ response }) => response.status))].toSorted((a, b) => a - b)
      expect(statuses).to.deep.equal([200, 201, 204, 400, 401, 404, 405, 406, 410, 413, 415, 417, 422, 429, 500, 503])
      const codes = new Set(results.flatMap(({ response }) => (response.json as { code?: string } | undefined)?.code ?? []))
      expect([...codes]).to.include.members(['missing_api_key', 'invalid_api_key', 'daily_quota_exceeded', 'key_temporarily_banned'])
    })

    it('has X-RateLimit-Limit, -Remaining from 0 to the limit, and -Reset in the future', () => {
      forEach(({ response, atMs }) => {
        const { limit, remaining, resetSeconds } = readQuotaHeaders(response)
        expect(limit).to.be.at.least(1)
        expect(remaining).to.be.within(0, limit)
        expect(resetSeconds * 1000).to.be.above(atMs)
      })
    })

    it('has RateLimit-Policy and RateLimit, whose most exhausted window matches the X-RateLimit headers, and a 429 waits for it', () => {
      forEach(({ response, atMs }) => {
        const { limit, remaining, resetSeconds } = readQuotaHeaders(response)
        const resetInSeconds = Math.ceil(resetSeconds - atMs / 1000)
        const windows = Object.values(readRateLimitFields(response))
        expect(windows.map((window) => [window.quota, window.remaining, window.resetInSeconds])).to.deep.include([
          limit,
          remaining,
          resetInSeconds,
        ])
        expect(remaining).to.equal(Math.min(...windows.map((window) => window.remaining)))
        if (response.status === 429) expect(response.headers['retry-after']).to.equal(`${resetInSeconds}`)
      })
    })

    it('has a unique request ID', () => {
      const ids = results.map(({ response }) => response.headers['x-request-id'])
      forEach(({ response }) => expect(String(response.headers['x-request-id'] ?? '')).to.match(/^[A-Za-z0-9._-]{1,64}$/))
      expect(new Set(ids)).to.have.property('size', results.length)
    })

    it('has a body with exactly code, message and its own status if it is an error', () => {
      forEach(({ method, response }) => {
        if (response.status < 400) return
        expect(response.headers['content-type']).to.equal('application/json')
        if (method === 'HEAD') expect(response.text).to.equal('')
        else expectError(response, response.status, (response.json as { code: string }).code)
      })
    })

    it('has a valid JSON body if it is a success other than 204', () => {
      forEach(({ method, response }) => {
        if (response.status >= 400) return
        const isEmpty = method === 'HEAD' || method === 'OPTIONS'
        expect(response.text === '').to.equal(isEmpty)
        if (!isEmpty) expect(response.json).to.be.an(response.status === 201 || response.text.startsWith('{') ? 'object' : 'array')
      })
    })

    it('forbids caching, sniffing, framing and scripts', () => {
      forEach(({ response }) => {
        expect(response.headers).to.include({
          'cache-control': 'no-store',
          'x-content-type-options': 'nosniff',
          'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
          'referrer-policy': 'no-referrer',
        })
        expect(response.headers).to.not.have.any.keys('x-powered-by', 'server', 'set-cookie', 'etag', 'strict-transport-security')
      })
    })

    it('has WWW-Authenticate, Allow and Retry-After exactly if its status requires them', () => {
      forEach(({ response: { status, headers } }) => {
        expect('www-authenticate' in headers).to.equal(status === 401)
        expect('allow' in headers).to.equal(status === 204 || status === 405)
        expect('retry-after' in headers).to.equal(status === 429 || status === 503)
      })
    })

    it('is 401 without a valid key, and 429 with an exhausted or banned one unless it is uncharged, for every request but OPTIONS', () => {
      const expected: Readonly<Record<string, number>> = {
        'no key': 401,
        'an invalid key': 401,
        'an exhausted key': 429,
        'a banned key': 429,
        'a revoked key': 401,
      }
      forEach(({ caller, path, method, response }) => {
        if (expected[caller] === undefined || method === 'OPTIONS') return
        const isUncharged = path.startsWith('/v1/usage') && method !== 'POST'
        if (expected[caller] === 429 && isUncharged) expect(response.status).to.be.oneOf([200, 400, 406])
        else expect(response.status).to.equal(expected[caller])
      })
    })
  })
}
