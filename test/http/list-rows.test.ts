import { expect } from 'chai'
import { MemoryOrderStore } from '../../src/adapters/memory/memory-order-store.js'
import type { Order } from '../../src/core/order.js'
import { anOrder } from '../support/builders.js'
import { useApi, withApi } from '../support/api.js'

describe('a listed pet', () => {
  const api = useApi()

  it('consists of id, name, categoryId and status', async () => {
    const response = await api.call('/v1/pets?limit=1')
    expect(response.headers['content-type']).to.equal('application/json')
    expect(response.text).to.equal('[{"id":1,"name":"Rex","categoryId":1,"status":"available"}]')
  })
})

describe('a listed order', () => {
  const listOne = async (order: Order) => {
    let text = ''
    await withApi({ doubles: { orders: new MemoryOrderStore([order]) } }, async (api, key) => {
      const response = await api.send('/v1/store/orders', { key })
      expect(response.headers['content-type']).to.equal('application/json')
      ;({ text } = response)
    })
    return text
  }

  it('consists of id, petId, quantity, status and complete if it has no shipDate', async () => {
    const order = anOrder({ id: 3n, petId: 9_007_199_254_740_991n, quantity: 2_147_483_647 })
    expect(await listOne(order)).to.equal('[{"id":3,"petId":9007199254740991,"quantity":2147483647,"status":"placed","complete":false}]')
  })

  it('has a shipDate in ISO 8601, UTC, with milliseconds', async () => {
    const order = anOrder({ status: 'delivered', complete: true, shipDate: new Date(Date.UTC(2026, 9, 2, 9, 0, 0, 7)) })
    expect(JSON.parse(await listOne(order))).to.deep.equal([
      { id: 1, petId: 4, quantity: 1, status: 'delivered', complete: true, shipDate: '2026-10-02T09:00:00.007Z' },
    ])
  })
})
