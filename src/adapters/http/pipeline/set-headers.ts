import type { Context } from 'koa'

/** Like `ctx.set`, but faster: every response has about 15 headers. */
export function setHeaders({ res }: Context, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value)
}
