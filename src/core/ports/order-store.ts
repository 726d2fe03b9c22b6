import type { Order, OrderStatus } from '../order.js'
import type { PageRequest } from '../page.js'

export interface OrderStore {
  /**
   * Returns up to `limit` orders in ascending ID order, or an empty array.
   * Throws `StoreUnavailable` if the store does not respond in time.
   */
  list(request: PageRequest<OrderStatus>): Promise<readonly Order[]>
}
