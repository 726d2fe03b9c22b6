import { expect } from 'chai'
import { expectError, findLink } from '../support/responses.js'
import type { TestApi, TestResponse } from '../support/api.js'
import { useApi, withApi } from '../support/api.js'

const REMOVED_AT_MS = Date.parse('2030-12-05T00:00:00Z')

describe('the lifecycle headers of an operation', () => {
  const api = useApi()

  /** One response of each status that every GET operation can return, apart from those of a failing store. */
  async function sendForEveryStatus(path: string): Promise<TestResponse[]> {
    const { secret: exhausted } = await api.issueKey('enterprise', { limits: { minute: 1, day: 1 } })
    await api.send('/v1/pets', { key: exhausted })
    const responses = [
      await api.call(path),
      await api.call(path, { method: 'HEAD' }),
      await api.send(path, { method: 'OPTIONS' }),
      await api.call(`${path}?x=1`),
      await api.send(path),
      await api.send(path, { key: 'rubbish' }),
      await api.call(path, { method: 'DELETE' }),
      await api.call(path, { headers: { accept: 'text/html' } }),
      await api.call(path, { headers: { expect: 'a miracle' } }),
      await api.send(path, { key: exhausted }),
    ]
    expect(responses.map(({ status }) => status)).to.deep.equal([200, 200, 204, 400, 401, 401, 405, 406, 417, 429])
    return responses
  }

  it('describe getPet as deprecated on every response, with its removal date and its successor', async () => {
    for (const response of [...(await sendForEveryStatus('/v1/pets/1')), await api.call('/v1/pets/999'), await api.call('/v1/pets/abc')]) {
      expect(response.headers['deprecation'], `${response.status}`).to.match(/^@\d{10}$/)
      expect(response.headers['sunset'], `${response.status}`).to.equal('Thu, 05 Dec 2030 00:00:00 GMT')
      expect(findLink('successor-version', response)).to.equal('/v1/pets')
      expect(response.headers).to.not.have.property('x-stability')
    }
  })

  it('describe listOrders as experimental on every response', async () => {
    for (const { status, headers } of await sendForEveryStatus('/v1/store/orders')) {
      expect(headers, `${status}`).to.include({ 'x-stability': 'experimental' }).and.to.not.have.any.keys('deprecation', 'sunset')
    }
  })

  it('are absent from other routes', async () => {
    for (const path of ['/v1/pets', '/v1/pets/', '/v1/pets/1/', '/v1/none']) {
      expect((await api.call(path)).headers).to.not.have.any.keys('deprecation', 'sunset', 'x-stability')
    }
  })

  it('contain a deprecation date that is before the removal and does not change with time', () =>
    withApi({}, async (own, key) => {
      const { deprecation } = (await own.send('/v1/pets/1', { key })).headers
      own.clock.advanceSeconds(1_000_000)
      expect((await own.send('/v1/pets/1', { key })).headers).to.include({ deprecation })
      expect(Number(String(deprecation).slice(1)) * 1000).to.be.below(REMOVED_AT_MS)
    }))
})

describe('getPet after its removal on 5 December 2030, 00:00 UTC', () => {
  const withApiAt = (offsetMs: number, use: (api: TestApi, key: string) => Promise<void>) =>
    withApi({}, async (api, key) => {
      api.clock.moveTo(REMOVED_AT_MS + offsetMs)
      await use(api, key)
    })

  it('returns 410, but not a millisecond earlier', () =>
    withApiAt(-1, async (api, key) => {
      expect(await api.send('/v1/pets/1', { key })).to.include({ status: 200 })
      expectError(await api.send('/v1/pets/999', { key }), 404, 'pet_not_found')
      api.clock.advanceMs(1)
      expectError(await api.send('/v1/pets/1', { key }), 410, 'operation_removed')
    }))

  it('returns 410 for every ID and query, with its successor', () =>
    withApiAt(0, async (api, key) => {
      for (const id of ['1', '999', '9223372036854775808', 'abc', '1?x=1']) {
        const response = await api.send(`/v1/pets/${id}`, { key })
        expectError(response, 410, 'operation_removed')
        expect(response.headers['sunset']).to.equal('Thu, 05 Dec 2030 00:00:00 GMT')
        expect(findLink('successor-version', response)).to.equal('/v1/pets')
      }
    }))

  it('returns 410 for HEAD, too, and 401, 405 and 406 take precedence', () =>
    withApiAt(86_400_000, async (api, key) => {
      expect(await api.send('/v1/pets/1', { method: 'HEAD', key })).to.include({ status: 410, text: '' })
      expectError(await api.send('/v1/pets/1'), 401, 'missing_api_key')
      expectError(await api.send('/v1/pets/1', { method: 'PUT', key }), 405, 'method_not_allowed')
      expectError(await api.send('/v1/pets/1', { key, headers: { accept: 'text/html' } }), 406, 'not_acceptable')
    }))

  it('does not affect the other operations', () =>
    withApiAt(0, async (api, key) => {
      expect(await api.send('/v1/pets?status=available', { key })).to.include({ status: 200 })
      const body = { name: 'Rex', categoryId: 7 }
      expect(await api.send('/v1/pets', { method: 'POST', key, body })).to.include({ status: 201 })
    }))
})
