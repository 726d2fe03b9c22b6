import type { Collection, Db } from 'mongodb'
import type { Order, OrderStatus } from '../../core/order.js'
import type { PageRequest } from '../../core/page.js'
import type { OrderStore } from '../../core/ports/order-store.js'
import { listByKeyset } from './list-by-keyset.js'

export interface OrderDocument {
  _id: bigint
  petId: bigint
  /** A whole number; the driver reads one beyond 32 bits as a bigint. */
  quantity: number | bigint
  status: OrderStatus
  complete: boolean
  shipDate?: Date
}

export class MongoOrderStore implements OrderStore {
  readonly #orders: Collection<OrderDocument>

  constructor(db: Db) {
    this.#orders = ordersCollection(db)
  }

  async list(request: PageRequest<OrderStatus>): Promise<readonly Order[]> {
    const found = await listByKeyset(this.#orders, request)
    return found.map(({ _id, petId, quantity, status, complete, shipDate }) => ({
      id: _id,
      petId,
      quantity: Number(quantity),
      status,
      complete,
      ...(shipDate ? { shipDate } : {}),
    }))
  }
}

export function ordersCollection(db: Db): Collection<OrderDocument> {
  return db.collection<OrderDocument>('orders', { useBigInt64: true })
}
