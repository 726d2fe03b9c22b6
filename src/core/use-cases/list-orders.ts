import type { Order, OrderStatus } from '../order.js'
import type { Page, PageRequest } from '../page.js'
import { readPage } from '../page.js'
import type { OrderStore } from '../ports/order-store.js'

export type ListOrders = (request: PageRequest<OrderStatus>) => Promise<Page<Order>>

export function makeListOrders({ orders }: { orders: OrderStore }): ListOrders {
  return (request) => readPage((pageRequest) => orders.list(pageRequest), request)
}
