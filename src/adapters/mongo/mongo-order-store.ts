import type { Collection, Db } from 'mongodb'
import type { Order, OrderStatus } from '../../core/order.js'
import type { PageRequest } from '../../core/page.js'
import type { OrderStore } from '../../core/ports/order-store.js'
import { listByKeyset } from './list-by-keyset.js'
import type { MongoConnection } from './mongo-connection.js'

export interface OrderDocument {
  _id: bigint
  petId: bigint
  /** A whole number. The driver reads numbers beyond 32 bits as bigint. */
  quantity: number | bigint
  status: OrderStatus
  complete: boolean
  shipDate?: Date
}

export class MongoOrderStore implements OrderStore {
  readonly #orders: Collection<OrderDocument>

  constructor(private readonly mongo: MongoConnection) {
    this.#orders = getOrderCollection(mongo.db)
  }

  async list(request: PageRequest<OrderStatus>): Promise<readonly Order[]> {
    const found = await listByKeyset(this.mongo, this.#orders, request)
    return found.map(toOrder)
  }
}

export function getOrderCollection(db: Db): Collection<OrderDocument> {
  return db.collection<OrderDocument>('orders', { useBigInt64: true })
}

function toOrder({ _id, petId, quantity, status, complete, shipDate }: OrderDocument): Order {
  return { id: _id, petId, quantity: Number(quantity), status, complete, ...(shipDate ? { shipDate } : {}) }
}
