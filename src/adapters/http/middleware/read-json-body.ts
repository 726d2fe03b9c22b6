import bodyParser from 'koa-bodyparser'
import { brokenBodySignal } from '../connection.js'
import { BODY_LIMIT_BYTES, BODY_TIMEOUT_MS, JSON_DEPTH_LIMIT } from '../hardening.js'
import type { Middleware, RequestContext } from '../context.js'
import { HttpError } from '../http-error.js'
import { parseLosslessJson } from '../json.js'
import { shortened } from '../validation.js'

/** The parser hands over each byte as one character, so that malformed UTF-8 is seen instead of mended. */
const RAW_TEXT = {
  enableTypes: ['text'],
  extendTypes: { text: ['application/json'] },
  textLimit: `${BODY_LIMIT_BYTES}b`,
  encoding: 'latin1',
}

/** Reads the body as JSON with exact whole numbers into `ctx.request.body`. Refuses, in this order: missing, media type, size, JSON. */
export function readJsonBody(): Middleware {
  const readRawText = bodyParser({ ...RAW_TEXT, onerror: refuseUnreadable })

  return async function readJson(ctx, next) {
    requireBody(ctx)
    requireJsonType(ctx)
    if (Number(ctx.headers['content-length'] ?? 0) > BODY_LIMIT_BYTES) throw tooLarge()
    // A client that waits for it is told to go on only now, when nothing but the body can be refused. HTTP/1.0 has no such answer.
    if (ctx.headers.expect && ctx.req.httpVersion !== '1.0') ctx.res.writeContinue()
    await unlessBodyFails(ctx, readRawText(ctx, async () => {}) as Promise<void>)
    const text = ctx.request.rawBody as string
    ctx.request.body = parseBytes(Buffer.from(text, 'latin1')) as object
    await next()
  }
}

function requireBody({ headers }: RequestContext): void {
  const announced = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
  if (!announced) throw new HttpError('missing_body')
}

function requireJsonType(ctx: RequestContext): void {
  const charset = ctx.request.charset.toLowerCase()
  if (!ctx.is('application/json') || !['', 'utf-8', 'utf8'].includes(charset)) {
    throw new HttpError('unsupported_media_type', { headers: { Accept: 'application/json' } })
  }
  const coding = ctx.get('Content-Encoding').toLowerCase()
  if (coding && coding !== 'identity') throw new HttpError('unsupported_media_type', { headers: { 'Accept-Encoding': 'identity' } })
  // The parser knows it in lower case only.
  delete ctx.req.headers['content-encoding']
}

function refuseUnreadable(error: Error & { status?: number; type?: string }): never {
  if (error.status === 413) throw tooLarge()
  // The client is gone: before the body was read from, or in the middle of it.
  if (error.status === 400 || error.type === 'stream.not.readable') throw unreadableBody(error)
  throw error
}

/** What is still to come of the body is not worth reading. */
function tooLarge(): HttpError {
  return new HttpError('payload_too_large', { headers: { Connection: 'close' } })
}

/** Rejects with `request_timeout` if the body does not arrive in time, and with `bad_request` if the rest of it cannot be read. */
async function unlessBodyFails({ req }: RequestContext, reading: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const failed = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(bodyTimeout()), BODY_TIMEOUT_MS)
    const broken = brokenBodySignal(req)
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

function unreadableBody(cause: Error): HttpError {
  return new HttpError('bad_request', {
    message: 'The body ended early, or its framing is not valid.',
    headers: { Connection: 'close' },
    cause,
  })
}

function parseBytes(bytes: Buffer): unknown {
  if (bytes.length === 0) throw new HttpError('missing_body')
  try {
    return parseLosslessJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes), JSON_DEPTH_LIMIT)
  } catch (error) {
    throw new HttpError('invalid_json', {
      message: `The body is not valid JSON in UTF-8: ${shortened((error as Error).message, 200)}`,
      cause: error,
    })
  }
}
