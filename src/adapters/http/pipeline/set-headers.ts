import type { Context } from 'koa'

/** Faster than `ctx.set`: every response has about 15 headers. Throws if the headers were already sent. `headers`: a plain object. */
export function setHeaders({ res }: Context, headers: Readonly<Record<string, string>>): void {
  for (const name in headers) res.setHeader(name, headers[name] as string)
}
