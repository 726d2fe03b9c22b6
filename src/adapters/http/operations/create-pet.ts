import type { Context } from 'koa'
import { z } from 'zod'
import { makeCreatePet } from '../../../core/use-cases/create-pet.js'
import { readJsonBody } from '../pipeline/read-json-body.js'
import { idempotencyKeyHeader, newPet, pet } from '../schemas/pet-schemas.js'
import { makeSerializer } from '../schemas/serializer.js'
import { NO_PARAMETERS, parseOrThrow, parseQuery } from '../schemas/validation.js'
import type { OperationDeclaration } from './operation.js'
import { API_PREFIX } from './operation.js'

const requestHeaders = z.object({ 'Idempotency-Key': idempotencyKeyHeader })

const REX = { name: 'Rex', categoryId: 7, status: 'available' }

export const createPetOperation: OperationDeclaration<Parameters<typeof makeCreatePet>[0] & { publicUrl: string }> = {
  operationId: 'createPet',
  method: 'post',
  path: '/pets',
  stability: 'stable',
  errors: ['InvalidPet', 'UnsupportedMediaType', 'IdempotencyKeyReused'],
  document: {
    tags: ['pets'],
    summary: 'Add an animal',
    description: 'Adds a pet. Send an `Idempotency-Key` if you want to retry without adding the pet twice.',
    requestParams: { header: requestHeaders },
    requestBody: { required: true, content: { 'application/json': { schema: newPet, example: REX } } },
    responses: {
      201: { description: 'The pet was added.', content: { 'application/json': { schema: pet, example: { id: 11, ...REX } } } },
    },
  },
  makeHandler({ publicUrl, ...ports }) {
    const createPet = makeCreatePet(ports)
    const serialize = makeSerializer<object>(pet)
    return async (ctx, call) => {
      parseQuery(NO_PARAMETERS, ctx.querystring)
      const requested = parseOrThrow(newPet, await readJsonBody(ctx, call), 'validation_failed')
      const idempotencyKey = parseIdempotencyKey(ctx)
      const scope = idempotencyKey === undefined ? undefined : { keyId: call.keyId, idempotencyKey }
      const { pet: created, isReplay } = await createPet(requested, scope, call.signal)
      const headers = { Location: `${publicUrl}${API_PREFIX}/pets/${created.id}`, ...(isReplay ? { 'Idempotent-Replayed': 'true' } : {}) }
      return { status: 201, headers, json: serialize(created) }
    }
  },
}

function parseIdempotencyKey({ req }: Context): string | undefined {
  const sent = req.headersDistinct['idempotency-key']
  return sent && parseOrThrow(requestHeaders, { 'Idempotency-Key': sent.join() }, 'invalid_parameter')['Idempotency-Key']
}
