export const ORDER_STATUSES = ['placed', 'approved', 'delivered'] as const
export type OrderStatus = (typeof ORDER_STATUSES)[number]

export interface NewOrder {
  readonly petId: bigint
  /** A whole number, 1 or more. */
  readonly quantity: number
  readonly status: OrderStatus
  readonly complete: boolean
  readonly shipDate?: Date
}

export interface Order extends NewOrder {
  /** 1 to 2^53 − 1. */
  readonly id: bigint
}
