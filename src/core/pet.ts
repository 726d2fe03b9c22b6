export const PET_STATUSES = ['available', 'pending', 'sold'] as const
export type PetStatus = (typeof PET_STATUSES)[number]

/** A pet as the client describes it. `name` is trimmed and satisfies `isPetName`; `categoryId` is any int64. */
export interface NewPet {
  readonly name: string
  readonly categoryId: bigint
  readonly status: PetStatus
}

export interface Pet extends NewPet {
  /** 1 to 2^53 − 1, assigned by the service. */
  readonly id: bigint
}

export const DEFAULT_PET_STATUS: PetStatus = 'available'

/** In Unicode code points, after trimming. */
export const PET_NAME_MAX_LENGTH = 200

/** Control characters, and lone surrogates, which UTF-8 cannot represent. */
const FORBIDDEN_CHARACTER = /[\p{Cc}\p{Cs}]/u

export function isPetName(trimmed: string): boolean {
  const length = [...trimmed].length
  return length >= 1 && length <= PET_NAME_MAX_LENGTH && !FORBIDDEN_CHARACTER.test(trimmed)
}
