import type { Context } from 'koa'
import { HttpError } from '../errors/http-error.js'
import type { Call } from '../operations/operation.js'
import { parseLosslessJson } from '../schemas/lossless-json.js'
import { truncate } from '../schemas/validation.js'
import { JSON_DEPTH_LIMIT } from '../server/limits.js'
import { readBody } from './read-body.js'

/** Returns the body as JSON, with whole numbers as bigints. Checks in this order: body present, media type, size, JSON. */
export async function readJsonBody(ctx: Context, call: Call): Promise<unknown> {
  const hasBody = ctx.headers['transfer-encoding'] !== undefined || Number(ctx.headers['content-length'] ?? 0) > 0
  if (!hasBody) throw new HttpError('missing_body')
  requireJsonType(ctx)
  const bytes = await readBody(ctx, call)
  if (bytes.length === 0) throw new HttpError('missing_body')
  return parseJson(bytes)
}

function requireJsonType(ctx: Context): void {
  const charset = ctx.request.charset.toLowerCase()
  if (!ctx.is('application/json') || !['', 'utf-8', 'utf8'].includes(charset)) {
    throw new HttpError('unsupported_media_type', { headers: { Accept: 'application/json' } })
  }
  const coding = ctx.get('Content-Encoding').toLowerCase()
  if (coding && coding !== 'identity') throw new HttpError('unsupported_media_type', { headers: { 'Accept-Encoding': 'identity' } })
  // `identity` needs no decoding, and the body parser recognizes it only in lower case.
  delete ctx.req.headers['content-encoding']
}

function parseJson(bytes: Buffer): unknown {
  try {
    return parseLosslessJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes), JSON_DEPTH_LIMIT)
  } catch (cause) {
    const reason = truncate((cause as Error).message, 200)
    throw new HttpError('invalid_json', { message: `The body is not valid JSON in UTF-8: ${reason}`, cause })
  }
}
