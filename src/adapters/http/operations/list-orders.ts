import { z } from 'zod'
import type { OrderStore } from '../../../core/ports/order-store.js'
import { makeListOrders } from '../../../core/use-cases/list-orders.js'
import { order, orderQuery } from '../schemas/order-schemas.js'
import { makeSerializer } from '../schemas/serializer.js'
import { parseQuery } from '../schemas/validation.js'
import type { OperationDeclaration } from './operation.js'
import type { PaginationDeps } from './pagination.js'
import { getPage } from './pagination.js'
import { coalesceReads } from './coalesce-reads.js'

const PATH = '/store/orders'

const responseBody = z.array(order).max(100)

const EXAMPLE = { id: 1, petId: 4, quantity: 1, status: 'delivered', complete: true, shipDate: '2026-10-02T09:00:00.000Z' }

export const listOrdersOperation: OperationDeclaration<{ orders: OrderStore } & PaginationDeps> = {
  operationId: 'listOrders',
  method: 'get',
  path: PATH,
  stability: 'experimental',
  errors: ['InvalidParameter'],
  document: {
    tags: ['store'],
    summary: 'List orders',
    description:
      'Returns a page of orders in ascending ID order, paginated and filtered like pets. Experimental: this operation may change at any time.',
    requestParams: { query: orderQuery },
    responses: {
      200: { description: 'The orders of this page.', content: { 'application/json': { schema: responseBody, example: [EXAMPLE] } } },
    },
  },
  makeHandler({ orders, cursors, publicUrl }) {
    const listOrders = makeListOrders({ orders })
    const serialize = makeSerializer<readonly object[]>(responseBody)
    const listing = { path: PATH, list: listOrders, serialize, cursors, publicUrl }
    const respond = coalesceReads(async (querystring) => getPage(listing, parseQuery(orderQuery, querystring)))
    return (ctx) => respond(ctx.querystring)
  },
}
