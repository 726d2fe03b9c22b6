import { z } from 'zod'
import type { ListPets } from '../../../core/use-cases/list-pets.js'
import type { Operation, OperationSpec } from './operation.js'
import type { Listing } from './pagination.js'
import { respondWithPage, pageRequest } from './pagination.js'
import { pet, petQuery } from '../schemas/pet-schemas.js'
import { makeSerializer } from '../schemas/serializer.js'
import { validQuery } from '../schemas/validation.js'

const pets = z.array(pet).max(100)

export const listPetsSpec = {
  operationId: 'listPets',
  method: 'get',
  path: '/pets',
  stability: 'stable',
  errors: ['InvalidParameter'],
  document: {
    tags: ['pets'],
    summary: 'List animals',
    description:
      'Returns a page of pets in ascending ID order. While there are more, the `Link` header has an entry with `rel="next"`; the last page has none. ' +
      'Pets that are added while you page may or may not appear. No pet appears twice.',
    requestParams: { query: petQuery },
    responses: {
      200: {
        description: 'The pets of this page.',
        content: { 'application/json': { schema: pets, example: [{ id: 1, name: 'Rex', categoryId: 7, status: 'available' }] } },
      },
    },
  },
} as const satisfies OperationSpec

export function makeListPetsOperation(deps: { listPets: ListPets } & Omit<Listing, 'path'>): Operation {
  const listing = { ...deps, path: listPetsSpec.path }
  const serialize = makeSerializer<readonly object[]>(pets)

  return {
    ...listPetsSpec,
    async handle(ctx) {
      const query = validQuery(petQuery, ctx)
      const page = await deps.listPets(pageRequest(listing, query))
      respondWithPage(ctx, listing, query, page, serialize)
    },
  }
}
