import { z } from 'zod'
import type { PetStore } from '../../../core/ports/pet-store.js'
import { makeListPets } from '../../../core/use-cases/list-pets.js'
import { pet, petQuery } from '../schemas/pet-schemas.js'
import { makeSerializer } from '../schemas/serializer.js'
import { parseQuery } from '../schemas/validation.js'
import type { OperationDeclaration } from './operation.js'
import type { PaginationDeps } from './pagination.js'
import { getPage } from './pagination.js'
import { coalesceReads } from './coalesce-reads.js'

const PATH = '/pets'

const responseBody = z.array(pet).max(100)

export const listPetsOperation: OperationDeclaration<{ pets: PetStore } & PaginationDeps> = {
  operationId: 'listPets',
  method: 'get',
  path: PATH,
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
        content: { 'application/json': { schema: responseBody, example: [{ id: 1, name: 'Rex', categoryId: 7, status: 'available' }] } },
      },
    },
  },
  makeHandler({ pets, cursors, publicUrl }) {
    const listPets = makeListPets({ pets })
    const serialize = makeSerializer<readonly object[]>(responseBody)
    const listing = { path: PATH, list: listPets, serialize, cursors, publicUrl }
    const respond = coalesceReads(async (querystring) => getPage(listing, parseQuery(petQuery, querystring)))
    return (ctx) => respond(ctx.querystring)
  },
}
