import type { Order, OrderStatus } from '../../core/order.js'
import type { Pet, PetStatus } from '../../core/pet.js'

const makePet = (id: bigint, name: string, categoryId: bigint, status: PetStatus): Pet => ({ id, name, categoryId, status })

/** Categories: 1 dogs, 2 cats, 3 birds, 4 small animals. */
export const SAMPLE_PETS: readonly Pet[] = [
  makePet(1n, 'Rex', 1n, 'available'),
  makePet(2n, 'Mimi', 2n, 'available'),
  makePet(3n, 'Polly', 3n, 'pending'),
  makePet(4n, 'Bruno', 1n, 'sold'),
  makePet(5n, 'Luna', 2n, 'available'),
  makePet(6n, 'Hazel', 4n, 'available'),
  makePet(7n, 'Kiwi', 3n, 'sold'),
  makePet(8n, 'Balu', 1n, 'pending'),
  makePet(9n, 'Pixel', 4n, 'available'),
  makePet(10n, 'Nala', 2n, 'sold'),
]

const makeOrder = (id: bigint, petId: bigint, status: OrderStatus, shipDate?: string): Order => ({
  id,
  petId,
  quantity: 1,
  status,
  complete: status === 'delivered',
  ...(shipDate ? { shipDate: new Date(shipDate) } : {}),
})

export const SAMPLE_ORDERS: readonly Order[] = [
  makeOrder(1n, 4n, 'delivered', '2026-10-02T09:00:00Z'),
  makeOrder(2n, 7n, 'delivered', '2026-10-19T14:30:00Z'),
  makeOrder(3n, 10n, 'approved', '2026-11-23T08:00:00Z'),
  makeOrder(4n, 3n, 'placed'),
  makeOrder(5n, 8n, 'placed'),
]
