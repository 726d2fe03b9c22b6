import bodyParser from 'koa-bodyparser'
import { payloadTooLarge, unlessBodyFails, unreadableBody } from '../pipeline/body-failure.js'
import { BODY_LIMIT_BYTES, JSON_DEPTH_LIMIT } from '../pipeline/hardening.js'
import type { Middleware, RequestContext } from '../pipeline/context.js'
import { HttpError } from '../errors/http-error.js'
import { parseLosslessJson } from '../schemas/lossless-json.js'
import { shortened } from '../schemas/validation.js'

/** The parser hands over each byte as one character, so that malformed UTF-8 is seen instead of mended. */
const RAW_TEXT = {
  enableTypes: ['text'],
  extendTypes: { text: ['application/json'] },
  textLimit: `${BODY_LIMIT_BYTES}b`,
  encoding: 'latin1',
}

/** Reads the body as JSON with exact whole numbers into `ctx.request.body`. Checks, in this order: body present, media type, size, JSON. */
export function readJsonBody(): Middleware {
  const readRawText = bodyParser({ ...RAW_TEXT, onerror: rejectUnreadable })

  return async function readJson(ctx, next) {
    requireBody(ctx)
    requireJsonType(ctx)
    if (Number(ctx.headers['content-length'] ?? 0) > BODY_LIMIT_BYTES) throw payloadTooLarge()
    // After all other checks: from here on, only the body can be rejected. HTTP/1.0 has no such response.
    if (ctx.headers.expect && ctx.req.httpVersion !== '1.0') ctx.res.writeContinue()
    await unlessBodyFails(ctx.req, readRawText(ctx, async () => {}) as Promise<void>)
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

function rejectUnreadable(error: Error & { status?: number; type?: string }): never {
  if (error.status === 413) throw payloadTooLarge()
  // The client disconnected before or while the body was read.
  if (error.status === 400 || error.type === 'stream.not.readable') throw unreadableBody(error)
  throw error
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
