import type { Context } from 'koa'
import { HttpError } from '../errors/http-error.js'

export function requireJsonAccepted(ctx: Context): void {
  // The default of many clients. Needs no parsing.
  if (ctx.headers.accept === '*/*') return
  // JSON has no charset parameter (RFC 8259, section 11), so a charset in the Accept header is ignored.
  ctx.req.headers.accept &&= ctx.req.headers.accept.replaceAll(/;\s*charset=[^;,]*/gi, '')
  if (!ctx.accepts('application/json')) throw new HttpError('not_acceptable')
}
