import { z } from 'zod'
import type { ListOrders } from '../../../core/use-cases/list-orders.js'
import type { Operation, OperationSpec } from './operation.js'
import type { Listing } from './pagination.js'
import { respondWithPage, pageRequest } from './pagination.js'
import { order, orderQuery } from '../schemas/order-schemas.js'
import { makeSerializer } from '../schemas/serializer.js'
import { validQuery } from '../schemas/validation.js'

const orders = z.array(order).max(100)

const EXAMPLE = { id: 1, petId: 4, quantity: 1, status: 'delivered', complete: true, shipDate: '2026-10-02T09:00:00.000Z' }

export const listOrdersSpec = {
  operationId: 'listOrders',
  method: 'get',
  path: '/store/orders',
  stability: 'experimental',
  errors: ['InvalidParameter'],
  document: {
    tags: ['store'],
    summary: 'List orders',
    description:
      'Returns a page of orders in ascending ID order, paginated and filtered like pets. Experimental: its shape may change at any time.',
    requestParams: { query: orderQuery },
    responses: {
      200: { description: 'The orders of this page.', content: { 'application/json': { schema: orders, example: [EXAMPLE] } } },
    },
  },
} as const satisfies OperationSpec

export function makeListOrdersOperation(deps: { listOrders: ListOrders } & Omit<Listing, 'path'>): Operation {
  const listing = { ...deps, path: listOrdersSpec.path }
  const serialize = makeSerializer<readonly object[]>(orders)

  return {
    ...listOrdersSpec,
    async handle(ctx) {
      const query = validQuery(orderQuery, ctx)
      const page = await deps.listOrders(pageRequest(listing, query))
      respondWithPage(ctx, listing, query, page, serialize)
    },
  }
}
