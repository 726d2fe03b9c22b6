import { z } from 'zod'
import { parseInt64 } from '../../../core/int64.js'
import type { PetStore } from '../../../core/ports/pet-store.js'
import { makeGetPet } from '../../../core/use-cases/get-pet.js'
import { pet } from '../schemas/pet-schemas.js'
import { ASSIGNED_ID } from '../schemas/schema-parts.js'
import { makeSerializer } from '../schemas/serializer.js'
import { NO_PARAMETERS, parseQuery } from '../schemas/validation.js'
import type { OperationDeclaration } from './operation.js'

const petIdParameter = z.string().meta({ override: ASSIGNED_ID, param: { description: 'Identifier of the pet.', example: 1 } })

const EXAMPLE = { id: 1, name: 'Rex', categoryId: 7, status: 'available' }

export const getPetOperation: OperationDeclaration<{ pets: PetStore }> = {
  operationId: 'getPet',
  method: 'get',
  path: '/pets/{petId}',
  stability: 'stable',
  deprecation: { since: '2026-11-20', sunset: '2030-12-05', successor: '/pets' },
  errors: ['InvalidParameter', 'PetNotFound'],
  document: {
    tags: ['pets'],
    summary: 'Get an animal',
    description: 'Deprecated. From 5 December 2030, this operation returns 410. Use `GET /pets` with the `status` filter instead.',
    requestParams: { path: z.object({ petId: petIdParameter }) },
    responses: { 200: { description: 'The pet.', content: { 'application/json': { schema: pet, example: EXAMPLE } } } },
  },
  makeHandler({ pets }) {
    const getPet = makeGetPet({ pets })
    const serialize = makeSerializer<object>(pet)
    return async (ctx, { params }) => {
      parseQuery(NO_PARAMETERS, ctx.querystring)
      // An ID that is not an int64 gets 404, because the specification has no 400 for an invalid ID.
      return { status: 200, json: serialize(await getPet(parseInt64(params['petId'] ?? ''))) }
    }
  },
}
