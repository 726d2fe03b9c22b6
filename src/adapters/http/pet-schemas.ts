import { z } from 'zod'
import { DEFAULT_PET_STATUS, isPetName, PET_NAME_MAX_LENGTH, PET_STATUSES } from '../../core/pet.js'
import { assignedId, cursor, INT64, int64, mustBe, pageLimit } from './schema-parts.js'

export const petStatus = z
  .enum(PET_STATUSES, mustBe(`one of ${PET_STATUSES.join(', ')}`))
  .meta({ id: 'PetStatus', description: 'Availability of a pet.', example: 'available' })

const NAME_RULE = `1 to ${PET_NAME_MAX_LENGTH} characters after trimming, without control characters`

/** That something other than white space is in it is all that a pattern for every reader can say. */
const NAME = { type: 'string', minLength: 1, maxLength: PET_NAME_MAX_LENGTH, pattern: '\\S' } as const

const petName = z
  .string(mustBe('a string'))
  .transform((name) => name.trim())
  .refine(isPetName, mustBe(NAME_RULE))
  .meta({ override: NAME, description: `${NAME_RULE}.`, example: 'Rex' })

const categoryId = int64.meta({
  override: INT64,
  description: 'The category the pet belongs to: any int64, kept to the last digit.',
  example: 7,
})

/** Unknown fields are ignored, `id` among them. */
export const newPet = z
  .object({ name: petName, categoryId, status: petStatus.default(DEFAULT_PET_STATUS) }, mustBe('a JSON object'))
  .meta({ id: 'NewPet', description: 'A pet to add. Other fields are ignored.' })

export const pet = z
  .object({
    id: assignedId.meta({ description: 'Assigned by the service on creation; at most 2^53-1.', example: 1 }),
    name: z.string().meta({ override: NAME, description: "The pet's name.", example: 'Rex' }),
    categoryId,
    status: petStatus,
  })
  .meta({ id: 'Pet' })

export const petQuery = z.strictObject({
  limit: pageLimit,
  status: petStatus.exactOptional().meta({ description: 'Only pets of this status.' }),
  cursor: cursor.exactOptional(),
})

export const idempotencyKeyHeader = z
  .string()
  .regex(/^("?)[\w.:-]{1,255}\1$/, mustBe('1 to 255 letters, digits or _ . : -, in double quotes or without'))
  .transform((sent) => sent.replaceAll('"', ''))
  .meta({
    override: { type: 'string', minLength: 1, maxLength: 257, pattern: '^([A-Za-z0-9_.:-]{1,255}|"[A-Za-z0-9_.:-]{1,255}")$' },
    description: 'A value of your choice, unique per pet: a retry that carries it within 24 hours adds the pet once and gets the same 201.',
    example: '8e03978e-40d5-43e8-bc93-6894a57f9324',
  })
