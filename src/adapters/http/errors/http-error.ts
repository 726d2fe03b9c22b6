import { DomainError, ExpectedError } from '../../../core/errors.js'
import type { ErrorCode } from './error-catalogue.js'
import { ERROR_CATALOGUE } from './error-catalogue.js'

interface HttpErrorOptions {
  /** Replaces the message of the catalogue. */
  readonly message?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly cause?: unknown
}

/** What the client gets after an error. `cause` is only logged. */
export interface ErrorResponse {
  readonly code: ErrorCode
  readonly status: number
  readonly message: string
  readonly headers: Readonly<Record<string, string>>
  readonly cause?: unknown
}

/** Thrown to send a 4xx or 5xx response. */
export class HttpError extends ExpectedError implements ErrorResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(
    readonly code: ErrorCode,
    { message, headers = {}, cause }: HttpErrorOptions = {},
  ) {
    super(message ?? ERROR_CATALOGUE[code].message, { cause })
    this.status = ERROR_CATALOGUE[code].status
    this.headers = headers
  }
}

/** An estimate of the time until the store is available again. */
const UNAVAILABLE_RETRY_AFTER_SECONDS = 2

/** Converts a thrown value to the response to send. An unexpected value becomes an `internal_error` without details. */
export function toErrorResponse(thrown: unknown): ErrorResponse {
  if (thrown instanceof HttpError) return thrown
  const isKnown = thrown instanceof DomainError && thrown.code in ERROR_CATALOGUE
  const code = isKnown ? (thrown.code as ErrorCode) : 'internal_error'
  const headers = code === 'service_unavailable' ? { 'Retry-After': `${UNAVAILABLE_RETRY_AFTER_SECONDS}` } : {}
  return { code, ...ERROR_CATALOGUE[code], headers, cause: thrown }
}
