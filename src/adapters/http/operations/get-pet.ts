import { parseInt64 } from '../../../core/int64.js'
import type { EnsureGetPetOffered, GetPet } from '../../../core/use-cases/get-pet.js'
import { GET_PET_REMOVED_AT_MS } from '../../../core/use-cases/get-pet.js'
import { z } from 'zod'
import type { Middleware } from '../pipeline/context.js'
import { respondWithJson } from '../pipeline/context.js'
import type { Operation, OperationSpec } from './operation.js'
import { API_PREFIX } from './operation.js'
import { pet } from '../schemas/pet-schemas.js'
import { ASSIGNED_ID } from '../schemas/schema-parts.js'
import { makeSerializer } from '../schemas/serializer.js'
import { rejectParameters } from '../schemas/validation.js'

/** The day of the first release, which announced the removal. */
const DEPRECATED_AT_MS = Date.UTC(2026, 10, 20)

const petIdParameter = z.string().meta({ override: ASSIGNED_ID, param: { description: 'Identifier of the pet.', example: 1 } })

const EXAMPLE = { id: 1, name: 'Rex', categoryId: 7, status: 'available' }

export const getPetSpec = {
  operationId: 'getPet',
  method: 'get',
  path: '/pets/{petId}',
  stability: 'stable',
  headers: (publicUrl) => ({
    Deprecation: `@${DEPRECATED_AT_MS / 1000}`,
    Sunset: new Date(GET_PET_REMOVED_AT_MS).toUTCString(),
    Link: `<${publicUrl}${API_PREFIX}/pets>; rel="successor-version"`,
  }),
  errors: ['InvalidParameter', 'PetNotFound', 'OperationRemoved'],
  document: {
    tags: ['pets'],
    summary: 'Get an animal',
    description: 'Deprecated. It is removed on 5 December 2030 and then returns 410. Use `GET /pets` with the `status` filter instead.',
    deprecated: true,
    'x-sunset': new Date(GET_PET_REMOVED_AT_MS).toISOString().slice(0, 10),
    requestParams: { path: z.object({ petId: petIdParameter }) },
    responses: { 200: { description: 'The pet.', content: { 'application/json': { schema: pet, example: EXAMPLE } } } },
  },
} as const satisfies OperationSpec

export function makeGetPetOperation({ getPet, ensureOffered }: { getPet: GetPet; ensureOffered: EnsureGetPetOffered }): Operation {
  const serialize = makeSerializer<object>(pet)

  return {
    ...getPetSpec,
    before: [rejectOnceRemoved(ensureOffered), rejectParameters()],
    async handle(ctx) {
      const { petId } = ctx['params'] as { petId: string }
      // The specification gives this operation no 400: what is no int64 is the id of no pet.
      respondWithJson(ctx, 200, serialize(await getPet(parseInt64(petId))))
    },
  }
}

function rejectOnceRemoved(ensureOffered: EnsureGetPetOffered): Middleware {
  return async function rejectRemoved(_ctx, next) {
    ensureOffered()
    await next()
  }
}
