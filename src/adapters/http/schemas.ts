import { z } from 'zod'
import { isInt64 } from '../../core/int64.js'
import { ORDER_STATUSES } from '../../core/order.js'
import { DEFAULT_PET_STATUS, isPetName, PET_NAME_MAX_LENGTH, PET_STATUSES } from '../../core/pet.js'

/**
 * The schemas of the contract. Each does up to three jobs: it validates, it types, and it stands in the OpenAPI document.
 * The document never gets bounds for int64: JSON writers would round them to values beyond it.
 */

/** What is wrong with a value: that it is missing, or what it must be. */
const mustBe = (what: string) => ({ error: ({ input }: { input: unknown }) => (input === undefined ? 'is required' : `must be ${what}`) })

const INT64 = { type: 'integer', format: 'int64' } as const

const int64 = z.bigint(mustBe('a whole number from -2^63 to 2^63-1')).refine(isInt64, mustBe('a whole number from -2^63 to 2^63-1'))

export const petStatus = z
  .enum(PET_STATUSES, mustBe(`one of ${PET_STATUSES.join(', ')}`))
  .meta({ id: 'PetStatus', description: 'Availability of a pet.', example: 'available' })

export const orderStatus = z
  .enum(ORDER_STATUSES, mustBe(`one of ${ORDER_STATUSES.join(', ')}`))
  .meta({ id: 'OrderStatus', description: 'How far an order has come.', example: 'placed' })

const NAME_RULE = `1 to ${PET_NAME_MAX_LENGTH} characters after trimming, without control characters`

const petName = z
  .string(mustBe('a string'))
  .transform((name) => name.trim())
  .refine(isPetName, mustBe(NAME_RULE))
  .meta({ override: { type: 'string', minLength: 1, maxLength: PET_NAME_MAX_LENGTH }, description: `${NAME_RULE}.`, example: 'Rex' })

const categoryId = int64.meta({
  override: INT64,
  description: 'The category the pet belongs to: any int64, kept to the last digit.',
  example: 7,
})

/** Unknown fields are ignored, `id` among them. */
export const newPet = z
  .object({ name: petName, categoryId, status: petStatus.default(DEFAULT_PET_STATUS) }, mustBe('a JSON object'))
  .meta({ id: 'NewPet', description: 'A pet to add. Other fields are ignored.' })

const assignedId = z.bigint().meta({ override: { ...INT64, minimum: 1, maximum: Number.MAX_SAFE_INTEGER } })

export const pet = z
  .object({
    id: assignedId.meta({ description: 'Assigned by the service on creation; at most 2^53-1.', example: 1 }),
    name: z.string().min(1).max(PET_NAME_MAX_LENGTH).meta({ description: "The pet's name.", example: 'Rex' }),
    categoryId,
    status: petStatus,
  })
  .meta({ id: 'Pet' })

export const order = z
  .object({
    id: assignedId.meta({ description: 'Identifier of the order.', example: 1 }),
    petId: assignedId.meta({ description: 'The pet that was ordered.', example: 4 }),
    quantity: z.int32().min(1).meta({ description: 'How many animals.', example: 1 }),
    status: orderStatus,
    complete: z.boolean().meta({ description: 'Nothing is left to do.', example: true }),
    shipDate: z.iso
      .datetime()
      .max(40)
      .optional()
      .meta({ description: 'When it was or will be shipped; absent while that is open.', example: '2026-10-02T09:00:00.000Z' }),
  })
  .meta({ id: 'Order' })

const PAGE_LIMIT_MAX = 100
const PAGE_LIMIT_DEFAULT = 20

const pageLimit = z
  .string()
  .regex(/^[1-9]\d{0,2}$/, mustBe(`a whole number from 1 to ${PAGE_LIMIT_MAX}`))
  .transform(Number)
  .refine((limit) => limit <= PAGE_LIMIT_MAX, mustBe(`a whole number from 1 to ${PAGE_LIMIT_MAX}`))
  .default(PAGE_LIMIT_DEFAULT)
  .meta({
    override: { type: 'integer', format: 'int32', minimum: 1, maximum: PAGE_LIMIT_MAX, default: PAGE_LIMIT_DEFAULT },
    description: 'The most rows that the answer holds.',
    example: 20,
  })

const cursor = z
  .string()
  .meta({ override: { type: 'string', maxLength: 200, pattern: '^[A-Za-z0-9_-]+$' }, description: 'Taken from the `Link` header of the page before; opaque.' })

export const petQuery = z.strictObject({
  limit: pageLimit,
  status: petStatus.exactOptional().meta({ description: 'Only pets of this status.' }),
  cursor: cursor.exactOptional(),
})

export const orderQuery = z.strictObject({
  limit: pageLimit,
  status: orderStatus.exactOptional().meta({ description: 'Only orders of this status.' }),
  cursor: cursor.exactOptional(),
})

export const idempotencyKeyHeader = z
  .string()
  .regex(/^("?)[\w.:-]{1,255}\1$/, mustBe('1 to 255 letters, digits or _ . : -, in double quotes or without'))
  .transform((sent) => sent.replaceAll('"', ''))
  .meta({
    override: { type: 'string', minLength: 1, maxLength: 257, pattern: '^"?[A-Za-z0-9_.:-]{1,255}"?$' },
    description: 'A value of your choice, unique per pet: a retry that carries it within 24 hours adds the pet once and gets the same 201.',
    example: '8e03978e-40d5-43e8-bc93-6894a57f9324',
  })
