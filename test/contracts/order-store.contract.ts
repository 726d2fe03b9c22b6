import { expect } from 'chai'
import { StoreUnavailable } from '../../src/core/errors.js'
import { MAX_ASSIGNED_ID } from '../../src/core/int64.js'
import type { Order } from '../../src/core/order.js'
import { ORDER_STATUSES } from '../../src/core/order.js'
import type { OrderStore } from '../../src/core/ports/order-store.js'
import { anOrder } from '../support/builders.js'
import { itListsByKeyset } from './keyset-list.js'
import type { OpenAdapter, Outage } from './open-adapter.js'
import { rejection } from './rejection.js'

/** `open` stores the orders in the given order, because the port only reads. */
export function describeOrderStore(
  name: string,
  open: (orders: readonly Order[]) => Promise<OpenAdapter<OrderStore>>,
  outage?: Outage,
): void {
  describe(`the order store ${name}`, () => {
    let opened: OpenAdapter<OrderStore> | undefined

    afterEach(async () => {
      await opened?.close()
      opened = undefined
    })

    async function openStore(orders: readonly Order[]): Promise<OrderStore> {
      opened = await open(orders)
      return opened.port
    }

    it('lists exactly the fields of an order, with the ship date to the millisecond', async () => {
      const orders = [
        anOrder({ id: 1n, petId: MAX_ASSIGNED_ID, quantity: 2_147_483_647 }),
        anOrder({ id: 2n, status: 'approved', complete: false, shipDate: new Date('2026-11-23T08:00:00.001Z') }),
        anOrder({ id: 3n, status: 'delivered', complete: true, shipDate: new Date('1999-12-31T23:59:59.999Z') }),
        anOrder({ id: MAX_ASSIGNED_ID, quantity: 1 }),
      ]
      const store = await openStore(orders)
      expect(await store.list({ limit: 100 })).to.deep.equal(orders)
    })

    it('lists the same orders on another replica', async () => {
      await openStore([anOrder()])
      const another = await opened?.reopen()
      expect(await another?.list({ limit: 100 })).to.deep.equal([anOrder()])
    })

    itListsByKeyset(
      ORDER_STATUSES,
      (id, status) => anOrder({ id, status, petId: id, quantity: 3 }),
      async (rows) => {
        const store = await openStore(rows)
        return (request) => store.list(request)
      },
    )
  })
  if (outage) describeOrderStoreOutages(name, open, outage)
}

export function describeOrderStoreOutages(
  name: string,
  open: (orders: readonly Order[]) => Promise<OpenAdapter<OrderStore>>,
  outage: Outage,
): void {
  describe(`the order store ${name}, during an outage`, () => {
    let opened: OpenAdapter<OrderStore>

    beforeEach(async () => {
      opened = await open([anOrder()])
    })

    afterEach(async () => {
      await outage.end()
      await opened.close()
    })

    it('throws StoreUnavailable instead of returning an empty list, and keeps all orders', async () => {
      const { port: store } = opened
      await outage.begin()
      expect(await rejection(store.list({ limit: 5 }))).to.be.instanceOf(StoreUnavailable)
      await outage.end()
      expect(await store.list({ limit: 5 })).to.deep.equal([anOrder()])
    })
  })
}
