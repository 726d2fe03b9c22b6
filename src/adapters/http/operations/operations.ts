import type { IdempotencyStore } from '../../../core/ports/idempotency-store.js'
import type { OrderStore } from '../../../core/ports/order-store.js'
import type { PetIds } from '../../../core/ports/pet-ids.js'
import type { PetStore } from '../../../core/ports/pet-store.js'
import { createPetOperation } from './create-pet.js'
import type { Cursors } from './cursor.js'
import { getPetOperation } from './get-pet.js'
import { listOrdersOperation } from './list-orders.js'
import { listPetsOperation } from './list-pets.js'
import { getUsageOperation } from './get-usage.js'
import type { Operation, OperationDeclaration } from './operation.js'

/** The ports and settings that the operations need. */
export interface OperationDeps {
  readonly pets: PetStore
  readonly petIds: PetIds
  readonly orders: OrderStore
  readonly idempotency: IdempotencyStore
  readonly cursors: Cursors
  /** Empty if links are relative. */
  readonly publicUrl: string
}

/** Every operation of the API. The routes, the OpenAPI document and the wiring are derived from this list. */
export const OPERATIONS: readonly OperationDeclaration<OperationDeps>[] = [
  listPetsOperation,
  createPetOperation,
  getPetOperation,
  listOrdersOperation,
  getUsageOperation,
]

export function makeOperations(deps: OperationDeps): Operation[] {
  return OPERATIONS.map((operation) => ({ ...operation, handle: operation.makeHandler(deps) }))
}
