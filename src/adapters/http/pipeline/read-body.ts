import type { IncomingMessage } from 'node:http'
import type { Context } from 'koa'
import bodyParser from 'koa-bodyparser'
import { HttpError } from '../errors/http-error.js'
import type { Call } from '../operations/operation.js'
import { getBrokenBodySignal } from '../server/broken-body.js'
import { BODY_LIMIT_BYTES, BODY_TIMEOUT_MS } from '../server/limits.js'

const RAW_BODY_OPTIONS = {
  enableTypes: ['text'],
  extendTypes: { text: ['application/json'] },
  textLimit: `${BODY_LIMIT_BYTES}b`,
  // Makes the parser return a Buffer. Its decoder would replace invalid UTF-8 instead of rejecting it.
  encoding: null,
}

const readBytes = bodyParser({ ...RAW_BODY_OPTIONS, onerror: rejectBody })

/** The rest of the body is not read after an error, so the connection cannot be used again. */
const CLOSE_CONNECTION = { headers: { Connection: 'close' } }

/** Reads the bytes of a JSON body. Their time does not count toward the deadline. Throws `payload_too_large`, `request_timeout` or `bad_request`. */
export async function readBody(ctx: Context, { pauseDeadline }: Call): Promise<Buffer> {
  if (Number(ctx.headers['content-length'] ?? 0) > BODY_LIMIT_BYTES) throw new HttpError('payload_too_large', CLOSE_CONNECTION)
  // Sent after all other checks, so that from here on only the body can be rejected. HTTP/1.0 has no interim responses.
  if (ctx.headers.expect && ctx.req.httpVersion !== '1.0') ctx.res.writeContinue()
  await pauseDeadline(() => rejectIfBodyFails(ctx.req, readBytes(ctx, async () => {}) as Promise<void>))
  return ctx.request.rawBody as Buffer
}

/** Rejects with `request_timeout` if the body does not arrive in time, and with `bad_request` if the rest of it cannot be read. */
async function rejectIfBodyFails(request: IncomingMessage, reading: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const failed = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new HttpError('request_timeout', CLOSE_CONNECTION)), BODY_TIMEOUT_MS)
    const broken = getBrokenBodySignal(request)
    const fail = () => reject(toBodyError(broken.reason as NodeJS.ErrnoException))
    if (broken.aborted) fail()
    else broken.addEventListener('abort', fail, { once: true })
  })
  await Promise.race([reading, failed]).finally(() => clearTimeout(timer))
}

function rejectBody(error: Error & { status?: number; type?: string }): never {
  if (error.status === 413) throw new HttpError('payload_too_large', CLOSE_CONNECTION)
  // The client disconnected before or while the body was read.
  if (error.status === 400 || error.type === 'stream.not.readable') throw toBodyError(error)
  throw error
}

function toBodyError(cause: NodeJS.ErrnoException): HttpError {
  if (cause.code === 'ERR_HTTP_REQUEST_TIMEOUT') return new HttpError('request_timeout', CLOSE_CONNECTION)
  return new HttpError('bad_request', { message: 'The body ended early, or a chunk of it is not valid.', ...CLOSE_CONNECTION, cause })
}
