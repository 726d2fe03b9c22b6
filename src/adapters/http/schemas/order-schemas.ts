import { z } from 'zod'
import { ORDER_STATUSES } from '../../../core/order.js'
import { assignedId, cursor, mustBe, pageLimit } from './schema-parts.js'

export const orderStatus = z
  .enum(ORDER_STATUSES, mustBe(`one of ${ORDER_STATUSES.join(', ')}`))
  .meta({ id: 'OrderStatus', description: 'Status of an order.' })

export const order = z
  .object({
    id: assignedId.meta({ description: 'Identifier of the order.', example: 1 }),
    petId: assignedId.meta({ description: 'The pet that was ordered.', example: 4 }),
    quantity: z.int32().min(1).meta({ format: 'int32', description: 'Number of animals.', example: 1 }),
    status: orderStatus,
    complete: z.boolean().meta({ description: 'Whether the order is complete.', example: true }),
    shipDate: z
      .string()
      .optional()
      .meta({
        override: { format: 'date-time' },
        description: 'When the order was or will be shipped. Absent if that is not known yet.',
        example: '2026-10-02T09:00:00.000Z',
      }),
  })
  .meta({ id: 'Order' })

export const orderQuery = z.strictObject({
  limit: pageLimit,
  status: orderStatus.exactOptional().meta({ description: 'Return only orders with this status.' }),
  cursor,
})
