import { z } from 'zod'
import { DEFAULT_PET_STATUS, isPetName, PET_NAME_MAX_LENGTH, PET_STATUSES } from '../../../core/pet.js'
import { assignedId, cursor, INT64, int64, mustBe, pageLimit, TRIMMED_TEXT_PATTERN } from './schema-parts.js'

export const petStatus = z
  .enum(PET_STATUSES, mustBe(`one of ${PET_STATUSES.join(', ')}`))
  .meta({ id: 'PetStatus', description: 'Availability of a pet.' })

const NAME_RULE = `1 to ${PET_NAME_MAX_LENGTH} characters after trimming, without control characters`

const NAME_SCHEMA = { type: 'string', minLength: 1, maxLength: PET_NAME_MAX_LENGTH, pattern: TRIMMED_TEXT_PATTERN } as const

const petName = z
  .string(mustBe('a string'))
  .transform((name) => name.trim())
  .refine(isPetName, mustBe(NAME_RULE))
  .meta({ override: NAME_SCHEMA, description: `${NAME_RULE} (U+0000 to U+001F, U+007F to U+009F).`, example: 'Rex' })

const categoryId = int64.meta({
  override: INT64,
  description:
    'The category of the pet. All 64 bits are preserved: in JavaScript, use a JSON parser that does not round numbers above 2^53.',
  example: 7,
})

const newPetStatus = petStatus.exactOptional().meta({ description: `If you omit it, the status is \`${DEFAULT_PET_STATUS}\`.` })

/** Unknown fields, such as `id`, are ignored. No `default` keyword: generators of TypeScript clients would make `status` required. */
export const newPet = z
  .object({ name: petName, categoryId, status: newPetStatus }, mustBe('a JSON object'))
  .transform(({ status = DEFAULT_PET_STATUS, ...sent }) => ({ ...sent, status }))
  .meta({ id: 'NewPet', description: 'A pet to add. Other fields are ignored.' })

export const pet = z
  .object({
    id: assignedId.meta({ description: 'Assigned by the service. At most 2^53-1.', example: 1 }),
    name: z.string().meta({ override: NAME_SCHEMA, description: "The pet's name.", example: 'Rex' }),
    categoryId,
    status: petStatus,
  })
  .meta({ id: 'Pet' })

export const petQuery = z.strictObject({
  limit: pageLimit,
  status: petStatus.exactOptional().meta({ description: 'Return only pets with this status.' }),
  cursor,
})

const IDEMPOTENCY_KEY_DESCRIPTION =
  'A value of your choice, unique per pet, such as a UUID. A retry with the same key and body within 24 hours gets the same 201 and adds no second pet.'

export const idempotencyKeyHeader = z
  .string()
  .regex(/^("?)[\w.:-]{1,255}\1$/, mustBe('1 to 255 letters, digits or _ . : -, in double quotes or without'))
  .transform((sent) => sent.replaceAll('"', ''))
  .meta({
    override: { type: 'string', minLength: 1, maxLength: 257, pattern: '^([A-Za-z0-9_.:-]{1,255}|"[A-Za-z0-9_.:-]{1,255}")$' },
  })
  .exactOptional()
  .meta({ description: IDEMPOTENCY_KEY_DESCRIPTION })
