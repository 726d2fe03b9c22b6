import { z } from 'zod'
import type { CreatePet } from '../../../core/use-cases/create-pet.js'
import type { RequestContext } from '../pipeline/context.js'
import { respondWithJson, verifiedKey } from '../pipeline/context.js'
import { readJsonBody } from '../middleware/read-json-body.js'
import type { Operation, OperationSpec } from './operation.js'
import { API_PREFIX } from './operation.js'
import { idempotencyKeyHeader, newPet, pet } from '../schemas/pet-schemas.js'
import { makeSerializer } from '../schemas/serializer.js'
import { rejectParameters, valid } from '../schemas/validation.js'

const headers = z.object({ 'Idempotency-Key': idempotencyKeyHeader })

const REX = { name: 'Rex', categoryId: 7, status: 'available' }

export const createPetSpec = {
  operationId: 'createPet',
  method: 'post',
  path: '/pets',
  stability: 'stable',
  errors: ['InvalidPet', 'UnsupportedMediaType', 'IdempotencyKeyReused'],
  document: {
    tags: ['pets'],
    summary: 'Add an animal',
    description: 'Adds a pet. Send an `Idempotency-Key` if you want to retry without adding the pet twice.',
    requestParams: { header: headers },
    requestBody: { required: true, content: { 'application/json': { schema: newPet, example: REX } } },
    responses: {
      201: { description: 'The pet was added.', content: { 'application/json': { schema: pet, example: { id: 11, ...REX } } } },
    },
  },
} as const satisfies OperationSpec

export function makeCreatePetOperation({ createPet, publicUrl }: { createPet: CreatePet; publicUrl: string }): Operation {
  const serialize = makeSerializer<object>(pet)

  return {
    ...createPetSpec,
    before: [rejectParameters(), readJsonBody()],
    async handle(ctx) {
      const asked = valid(newPet, ctx.request.body, 'validation_failed')
      const { pet: created, replayed } = await createPet(asked, idempotencyScope(ctx))
      if (replayed) ctx.set('Idempotent-Replayed', 'true')
      ctx.set('Location', `${publicUrl}${API_PREFIX}${createPetSpec.path}/${created.id}`)
      respondWithJson(ctx, 201, serialize(created))
    },
  }
}

function idempotencyScope(ctx: RequestContext) {
  const sent = ctx.req.headersDistinct['idempotency-key']
  if (!sent) return undefined
  const { 'Idempotency-Key': idempotencyKey } = valid(headers, { 'Idempotency-Key': sent.join() }, 'invalid_parameter')
  return idempotencyKey === undefined ? undefined : { keyId: verifiedKey(ctx).keyId, idempotencyKey }
}
