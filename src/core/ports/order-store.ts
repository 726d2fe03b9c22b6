import type { Order, OrderStatus } from '../order.js'
import type { PageRequest } from '../page.js'

export interface OrderStore {
  /**
   * Up to `limit` orders in ascending id; none is an empty array.
   * Throws `StoreUnavailable` when the store does not answer in time.
   */
  list(request: PageRequest<OrderStatus>): Promise<readonly Order[]>
}
