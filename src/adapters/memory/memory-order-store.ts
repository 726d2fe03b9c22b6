import type { Order, OrderStatus } from '../../core/order.js'
import type { PageRequest } from '../../core/page.js'
import type { OrderStore } from '../../core/ports/order-store.js'
import { SortedRows } from './sorted-rows.js'

export class MemoryOrderStore implements OrderStore {
  readonly #rows = new SortedRows<Order, OrderStatus>()

  constructor(orders: readonly Order[]) {
    for (const order of orders) this.#rows.insert(order)
  }

  async list(request: PageRequest<OrderStatus>): Promise<readonly Order[]> {
    return this.#rows.list(request)
  }
}
