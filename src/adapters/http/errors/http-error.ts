import { DomainError } from '../../../core/errors.js'
import type { ErrorCode } from './error-catalogue.js'
import { ERROR_CATALOGUE } from './error-catalogue.js'

interface Details {
  /** Instead of the catalogue's. */
  readonly message?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly cause?: unknown
}

/** An answer of 4xx or 5xx, thrown where it becomes clear and written by the one error boundary. */
export class HttpError extends Error {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(
    readonly code: ErrorCode,
    { message, headers = {}, cause }: Details = {},
  ) {
    super(message ?? ERROR_CATALOGUE[code].message, { cause })
    this.status = ERROR_CATALOGUE[code].status
    this.headers = headers
  }
}

/** Seconds after which a store that is away is worth keyVersion again. */
const UNAVAILABLE_RETRY_AFTER_SECONDS = 2

/** What the client is told of a thrown value. Whatever nobody expected is an `internal_error` that tells nothing. */
export function toHttpError(thrown: unknown): HttpError {
  if (thrown instanceof HttpError) return thrown
  if (!(thrown instanceof DomainError) || !(thrown.code in ERROR_CATALOGUE)) return new HttpError('internal_error', { cause: thrown })
  const code = thrown.code as ErrorCode
  const headers = code === 'service_unavailable' ? { 'Retry-After': `${UNAVAILABLE_RETRY_AFTER_SECONDS}` } : {}
  return new HttpError(code, { headers, cause: thrown })
}
