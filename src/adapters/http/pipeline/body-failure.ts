import type { IncomingMessage } from 'node:http'
import { brokenBodySignal } from '../server/connection.js'
import { BODY_TIMEOUT_MS } from './hardening.js'
import { HttpError } from '../errors/http-error.js'

/** Rejects with `request_timeout` if the body does not arrive in time, and with `bad_request` if the rest of it cannot be read. */
export async function unlessBodyFails(request: IncomingMessage, reading: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const failed = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(bodyTimeout()), BODY_TIMEOUT_MS)
    const broken = brokenBodySignal(request)
    const fail = () => reject(toBodyError(broken.reason as NodeJS.ErrnoException))
    if (broken.aborted) fail()
    else broken.addEventListener('abort', fail, { once: true })
  })
  await Promise.race([reading, failed]).finally(() => clearTimeout(timer))
}

function toBodyError(cause: NodeJS.ErrnoException): HttpError {
  return cause.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? bodyTimeout() : unreadableBody(cause)
}

function bodyTimeout(): HttpError {
  return new HttpError('request_timeout', { headers: { Connection: 'close' } })
}

/** The client disconnected, or the framing of the body is not valid. */
export function unreadableBody(cause: Error): HttpError {
  return new HttpError('bad_request', {
    message: 'The body ended early, or its framing is not valid.',
    headers: { Connection: 'close' },
    cause,
  })
}

/** Closes the connection, because the rest of the body is not read. */
export function payloadTooLarge(): HttpError {
  return new HttpError('payload_too_large', { headers: { Connection: 'close' } })
}
