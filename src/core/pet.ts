export const PET_STATUSES = ['available', 'pending', 'sold'] as const
export type PetStatus = (typeof PET_STATUSES)[number]

/** What the caller says of a pet. `name` is trimmed and keeps `isPetName`; `categoryId` is any int64. */
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

/** Lone surrogates are refused with the control characters: UTF-8 cannot carry them back to the caller. */
const UNFIT_FOR_A_NAME = /[\p{Cc}\p{Cs}]/u

export function isPetName(trimmed: string): boolean {
  const length = [...trimmed].length
  return length >= 1 && length <= PET_NAME_MAX_LENGTH && !UNFIT_FOR_A_NAME.test(trimmed)
}
