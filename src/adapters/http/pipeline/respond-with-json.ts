import type { Context } from 'koa'

/** Sends text that is already JSON. Its media type has no charset parameter (RFC 8259, section 11), although Koa would add one. */
export function respondWithJson(ctx: Context, status: number, json: string): void {
  ctx.status = status
  ctx.res.setHeader('Content-Type', 'application/json')
  ctx.body = json
}
