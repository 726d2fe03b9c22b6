export const ORDER_STATUSES = ['placed', 'approved', 'delivered'] as const
export type OrderStatus = (typeof ORDER_STATUSES)[number]

export interface Order {
  readonly id: bigint
  readonly petId: bigint
  /** A whole number of animals, 1 or more. */
  readonly quantity: number
  readonly status: OrderStatus
  readonly complete: boolean
  readonly shipDate?: Date
}
