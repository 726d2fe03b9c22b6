/** Every error that the service returns. The OpenAPI document and the table in docs/api/errors.md follow from it. */
export const ERROR_CATALOGUE = {
  bad_request: { status: 400, message: 'The request is not valid HTTP, or its method is unknown.' },
  invalid_parameter: { status: 400, message: 'A query parameter or header is not valid.' },
  invalid_cursor: { status: 400, message: 'The cursor is not valid for this list and filter.' },
  missing_body: { status: 400, message: 'A JSON body is required.' },
  invalid_json: { status: 400, message: 'The body is not valid JSON in UTF-8.' },
  validation_failed: { status: 400, message: 'A field of the body is missing or not valid.' },
  missing_api_key: { status: 401, message: 'An API key is required. Send it as "Authorization: Bearer <API_KEY>".' },
  invalid_api_key: { status: 401, message: 'The API key is not valid.' },
  not_found: { status: 404, message: 'The URL does not exist.' },
  pet_not_found: { status: 404, message: 'The pet does not exist.' },
  method_not_allowed: { status: 405, message: 'The URL does not allow the method. The Allow header lists the allowed methods.' },
  not_acceptable: { status: 406, message: 'The Accept header excludes application/json, the media type of all responses.' },
  request_timeout: { status: 408, message: 'The request did not arrive in time.' },
  operation_removed: { status: 410, message: 'The operation was removed. The Link header contains the URL of its successor.' },
  payload_too_large: { status: 413, message: 'The body is larger than 64 KiB.' },
  unsupported_media_type: { status: 415, message: 'The Content-Type must be application/json in UTF-8, without compression.' },
  expectation_failed: { status: 417, message: 'The only supported value of the Expect header is 100-continue.' },
  idempotency_key_reused: { status: 422, message: 'The Idempotency-Key was already used with a different body.' },
  rate_limit_exceeded: {
    status: 429,
    message: 'The limit of requests per minute is reached. Retry after the number of seconds in Retry-After.',
  },
  daily_quota_exceeded: {
    status: 429,
    message: 'The limit of requests per day (UTC) is reached. Retry after the number of seconds in Retry-After.',
  },
  key_temporarily_banned: {
    status: 429,
    message:
      'The API key is temporarily banned because it kept sending requests after 429. Retry after the number of seconds in Retry-After.',
  },
  too_many_failed_authentications: {
    status: 429,
    message: 'Too many invalid API keys were sent from this IP address. Retry after the number of seconds in Retry-After.',
  },
  headers_too_large: { status: 431, message: 'The request line and headers are larger than 8 KiB.' },
  internal_error: { status: 500, message: 'An unexpected error occurred. Include the X-Request-Id when you report it.' },
  service_unavailable: {
    status: 503,
    message: 'The service is temporarily unavailable. Retry after the number of seconds in Retry-After.',
  },
} as const satisfies Record<string, { status: number; message: string }>

export type ErrorCode = keyof typeof ERROR_CATALOGUE

/** Returns the body of an error response: the schema `Error` of the OpenAPI document. */
export function toErrorBody(code: ErrorCode, message: string = ERROR_CATALOGUE[code].message) {
  return { code, message, status: ERROR_CATALOGUE[code].status }
}
