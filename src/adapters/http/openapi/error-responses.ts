import type { ErrorCode } from '../errors/error-catalogue.js'
import { ERROR_CATALOGUE } from '../errors/error-catalogue.js'

/**
 * The error responses that the OpenAPI document describes by status: those that programs handle differently, and those with additional
 * headers. Its `default` response describes all other errors. All codes of one response have the same status.
 */
export const ERROR_RESPONSES = {
  InvalidParameter: {
    description: 'The request is malformed, or a parameter is not valid. `message` names every failing parameter.',
    codes: ['bad_request', 'invalid_parameter', 'invalid_cursor'],
  },
  InvalidPet: {
    description: 'The request is malformed, the body is missing, or a field is not valid. `message` names every failing field.',
    codes: ['bad_request', 'missing_body', 'invalid_json', 'validation_failed', 'invalid_parameter'],
  },
  InvalidApiKey: {
    description: 'The API key is missing or not valid. Malformed, unknown, expired and revoked keys get the same body.',
    codes: ['missing_api_key', 'invalid_api_key'],
  },
  PetNotFound: {
    description: 'The pet does not exist.',
    codes: ['pet_not_found'],
  },
  OperationRemoved: {
    description: 'The operation was removed on its sunset date. Use its successor.',
    codes: ['operation_removed'],
  },
  UnsupportedMediaType: {
    description: 'The body is not `application/json` in UTF-8, or it is compressed.',
    codes: ['unsupported_media_type'],
  },
  IdempotencyKeyReused: {
    description: 'The `Idempotency-Key` was used with a different body within the last 24 hours.',
    codes: ['idempotency_key_reused'],
  },
  TooManyRequests: {
    description:
      'A limit is reached, or the key is banned. Wait for the number of seconds in `Retry-After`, which is exact. If the retry is ' +
      'rejected too, wait for its `Retry-After`. A rejected request does not count toward any limit. If you keep sending requests after a 429, the key is banned: for ' +
      '60 seconds at first, then twice as long each time, up to 24 hours.',
    codes: ['rate_limit_exceeded', 'daily_quota_exceeded', 'key_temporarily_banned', 'too_many_failed_authentications'],
  },
  ServiceUnavailable: {
    description:
      'The service is temporarily unavailable. The request does not count toward any limit. Retry after the number of seconds in `Retry-After`.',
    codes: ['service_unavailable'],
  },
} as const satisfies Record<string, { description: string; codes: readonly ErrorCode[] }>

export type ErrorResponseName = keyof typeof ERROR_RESPONSES

/** The error responses that every operation may return. */
export const COMMON_ERROR_RESPONSES: readonly ErrorResponseName[] = ['InvalidApiKey', 'TooManyRequests', 'ServiceUnavailable']

export function toStatus(name: ErrorResponseName): number {
  return ERROR_CATALOGUE[ERROR_RESPONSES[name].codes[0]].status
}

/** The codes of the `default` response: those that no other response has. */
export function listOtherCodes(): ErrorCode[] {
  const documented = new Set<ErrorCode>(Object.values(ERROR_RESPONSES).flatMap(({ codes }) => codes as readonly ErrorCode[]))
  return (Object.keys(ERROR_CATALOGUE) as ErrorCode[]).filter((code) => !documented.has(code))
}
