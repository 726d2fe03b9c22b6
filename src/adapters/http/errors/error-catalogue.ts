/** Every error code that the service answers with: in this one place, from which the OpenAPI document and the README's table come. */
export const ERROR_CATALOGUE = {
  bad_request: { status: 400, message: 'The request is not valid HTTP, or its method is unknown.' },
  invalid_parameter: { status: 400, message: 'A query parameter or header is not valid.' },
  invalid_cursor: { status: 400, message: 'The cursor is not one that this service gave out for this filter.' },
  missing_body: { status: 400, message: 'A JSON body is required.' },
  invalid_json: { status: 400, message: 'The body is not valid JSON in UTF-8.' },
  validation_failed: { status: 400, message: 'The body does not describe a pet.' },
  missing_api_key: { status: 401, message: 'An API key is required: send it as "Authorization: Bearer <API_KEY>".' },
  invalid_api_key: { status: 401, message: 'The API key is not valid.' },
  not_found: { status: 404, message: 'There is nothing at this address.' },
  pet_not_found: { status: 404, message: 'The pet could not be found.' },
  method_not_allowed: { status: 405, message: 'This address does not know the method; the Allow header lists those it knows.' },
  not_acceptable: { status: 406, message: 'TestResponses are application/json, which the Accept header excludes.' },
  request_timeout: { status: 408, message: 'The request did not arrive in time.' },
  operation_removed: { status: 410, message: 'This operation was removed; use GET /v1/pets with the status filter.' },
  payload_too_large: { status: 413, message: 'The body is larger than 64 KiB.' },
  unsupported_media_type: {
    status: 415,
    message: 'The body must be sent with Content-Type: application/json, in UTF-8 and not compressed.',
  },
  expectation_failed: { status: 417, message: 'The only expectation that can be met is 100-continue.' },
  idempotency_key_reused: { status: 422, message: 'This Idempotency-Key was used for another request.' },
  rate_limit_exceeded: { status: 429, message: 'The requests of this minute are used up; retry after the time in Retry-After.' },
  daily_quota_exceeded: { status: 429, message: 'The requests of this day (UTC) are used up; retry after the time in Retry-After.' },
  key_temporarily_banned: {
    status: 429,
    message: 'The API key is banned for a while, because it went on sending after 429; retry after the time in Retry-After.',
  },
  too_many_failed_authentications: {
    status: 429,
    message: 'Too many invalid API keys came from this IP address; retry after the time in Retry-After.',
  },
  headers_too_large: { status: 431, message: 'The request line and headers are larger than 8 KiB.' },
  internal_error: { status: 500, message: 'The service failed; quote the X-Request-Id when you report it.' },
  service_unavailable: { status: 503, message: 'The service cannot answer at the moment; retry after the time in Retry-After.' },
} as const satisfies Record<string, { status: number; message: string }>

export type ErrorCode = keyof typeof ERROR_CATALOGUE

/** The Error body of the interface specification. */
export interface ErrorBody {
  readonly code: ErrorCode
  readonly message: string
  readonly status: number
}

export function errorBody(code: ErrorCode, message: string = ERROR_CATALOGUE[code].message): ErrorBody {
  return { code, message, status: ERROR_CATALOGUE[code].status }
}
