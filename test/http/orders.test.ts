import { expect } from 'chai'
import { MemoryOrderStore } from '../../src/adapters/memory/memory-order-store.js'
import type { Order } from '../../src/core/order.js'
import { ORDER_STATUSES } from '../../src/core/order.js'
import { anOrder, shuffled } from '../support/builders.js'
import { expectError, findLink } from '../support/responses.js'
import type { TestResponse, TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import { issueAmpleKey, withApi } from '../support/api.js'

const ORDERS = 45

const orderNumber = (number: number) => anOrder({ id: BigInt(number), status: ORDER_STATUSES[number % 3] ?? 'placed' })
const numbersTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1)
const idsOf = ({ json }: TestResponse) => (json as { id: number }[]).map(({ id }) => id)
const holding = (...orders: readonly Order[]) => ({ doubles: { orders: new MemoryOrderStore(orders) } })

describe('GET /v1/store/orders', () => {
  let api: TestApi
  let key: string

  before(async () => {
    api = await startApi(holding(...shuffled(numbersTo(ORDERS)).map(orderNumber)))
    key = await issueAmpleKey(api)
  })
  after(() => api.stop())

  const list = (query = '') => api.send(`/v1/store/orders${query}`, { key })

  it('answers a bare array of orders, without a shipDate where shipping is open', () =>
    withApi(holding(anOrder({ id: 3n, petId: 9_007_199_254_740_991n, quantity: 2_147_483_647, status: 'placed' })), async (own, ownKey) => {
      const answer = await own.send('/v1/store/orders', { key: ownKey })
      expect(answer.headers['content-type']).to.equal('application/json')
      expect(answer.text).to.equal('[{"id":3,"petId":9007199254740991,"quantity":2147483647,"status":"placed","complete":false}]')
    }))

  it('tells a shipDate in ISO 8601, UTC, to the millisecond', () =>
    withApi(
      holding(anOrder({ status: 'delivered', complete: true, shipDate: new Date(Date.UTC(2026, 9, 2, 9, 0, 0, 7)) })),
      async (own, ownKey) => {
        const { json } = await own.send('/v1/store/orders', { key: ownKey })
        expect(json).to.deep.equal([
          { id: 1, petId: 4, quantity: 1, status: 'delivered', complete: true, shipDate: '2026-10-02T09:00:00.007Z' },
        ])
      },
    ))

  it('shows the sample orders, each of a pet that is there', () =>
    withApi({}, async (own, ownKey) => {
      const orders = (await own.send('/v1/store/orders', { key: ownKey })).json as { petId: number; shipDate?: string }[]
      expect(orders).to.have.length(5)
      for (const { petId, shipDate } of orders) {
        expect((await own.send(`/v1/pets/${petId}`, { key: ownKey })).status).to.equal(200)
        if (shipDate !== undefined) expect(new Date(shipDate).toISOString()).to.equal(shipDate)
      }
      expect(orders.some(({ shipDate }) => shipDate === undefined)).to.equal(true)
    }))

  it('a page holds the first 20 in ascending id, unless the caller says otherwise', async () => {
    expect(idsOf(await list())).to.deep.equal(numbersTo(20))
    expect(idsOf(await list('?limit=1'))).to.deep.equal([1])
    expect(idsOf(await list('?limit=100'))).to.deep.equal(numbersTo(ORDERS))
  })

  for (const query of ['', '&status=delivered']) {
    it(`following the next link visits every order once, in order (limit=7${query})`, async () => {
      const seen: number[] = []
      let target: string | undefined = `/v1/store/orders?limit=7${query}`
      while (target !== undefined) {
        const page: TestResponse = await api.send(target, { key })
        seen.push(...idsOf(page))
        target = findLink('next', page)
      }
      expect(seen).to.deep.equal(idsOf(await list(`?limit=100${query}`)))
      expect(seen).to.have.length(query ? 15 : 45)
    })
  }

  for (const status of ORDER_STATUSES) {
    it(`status=${status} shows orders of that status only`, async () => {
      const { json } = await list(`?status=${status}&limit=100`)
      expect(json).to.have.length(15)
      expect((json as Order[]).every((order) => order.status === status)).to.equal(true)
    })
  }

  it('refuses what is no order status, a bad limit and unknown parameters, all of them named', async () => {
    const message = expectError(await list('?limit=101&status=available&petId=4'), 400, 'invalid_parameter')
    expect(message).to.match(/^limit: [^;]+; status: must be one of placed, approved, delivered; petId: [^;]+$/)
    expectError(await list('?cursor=rubbish'), 400, 'invalid_cursor')
  })

  it('is experimental, which every answer of the route says, whatever its status', async () => {
    const { secret: spent } = await api.issueKey('enterprise', { limits: { minute: 1, day: 1 } })
    await api.send('/v1/pets', { key: spent })
    const send = (method: string, secret?: string, headers = {}) =>
      api.send('/v1/store/orders', { method, headers, ...(secret === undefined ? {} : { key: secret }) })
    const answers = [
      await list(),
      await send('HEAD', key),
      await send('OPTIONS'),
      await list('?limit=0'),
      await send('GET'),
      await send('GET', 'rubbish'),
      await send('POST', key),
      await send('GET', key, { accept: 'text/html' }),
      await send('GET', spent),
    ]
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 204, 400, 401, 401, 405, 406, 429])
    for (const { status, headers } of answers) expect(headers, `${status}`).to.include({ 'x-stability': 'experimental' })
  })

  it('a stable operation says nothing of stability', async () => {
    for (const path of ['/v1/pets', '/v1/pets/1']) expect((await api.send(path, { key })).headers).to.not.have.property('x-stability')
  })

  it('cannot be written to', async () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const answer = await api.send('/v1/store/orders', { method, key, body: {} })
      expectError(answer, 405, 'method_not_allowed')
      expect(answer.headers.allow).to.equal('GET, HEAD, OPTIONS')
    }
  })
})
