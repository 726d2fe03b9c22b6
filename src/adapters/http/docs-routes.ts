import type { ReadStream } from 'node:fs'
import { accessSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import { send } from '@koa/send'
import etag from 'etag'
import { LRUCache } from 'lru-cache'
import { OperatorError } from '../../core/errors.js'
import type { Plans } from '../../core/plan.js'
import type { Middleware, RequestContext } from './context.js'
import { DOCS_CONTENT_SECURITY_POLICY } from './hardening.js'
import { openApiText } from './openapi.js'
import type { ServicePage } from './routes.js'
import { toServerUrl } from './server-url.js'

/** `npm run build` puts them there, each with a compressed copy in `.br` and in `.gz`. */
const FILES_FOLDER = fileURLToPath(new URL('docs/', import.meta.url))

/** The page and the document change with a release, so a client asks each time whether its copy is still current. */
const REVALIDATE = { 'Cache-Control': 'no-cache' }
const CACHE_FOR_AN_HOUR = { 'Cache-Control': 'public, max-age=3600' }

const HTML = { 'Content-Type': 'text/html; charset=utf-8' }
const JAVASCRIPT = { 'Content-Type': 'text/javascript; charset=utf-8' }

/** A document has one text per server URL: as many as this machine has IP addresses, where `PUBLIC_URL` is unset. */
const CACHED_TEXTS = 16

type Encoding = 'br' | 'gzip' | 'identity'

/** A text in every encoding. */
type Encoded = Readonly<Record<Encoding, { readonly bytes: Buffer; readonly etag: string }>>

/** The OpenAPI document in two formats, and a page that shows it and loads nothing from another origin. */
export function docsRoutes({ publicUrl, plans }: { publicUrl: string; plans: Plans }): ServicePage[] {
  const document = (format: 'json' | 'yaml') => documentHandler(publicUrl, (serverUrl) => openApiText({ serverUrl, plans }, format))
  return [
    { path: '/openapi.json', handle: revalidated({ 'Content-Type': 'application/json', ...REVALIDATE }, document('json')) },
    { path: '/openapi.yaml', handle: revalidated({ 'Content-Type': 'application/yaml', ...REVALIDATE }, document('yaml')) },
    {
      path: '/docs',
      handle: revalidated({ ...HTML, ...REVALIDATE, 'Content-Security-Policy': DOCS_CONTENT_SECURITY_POLICY }, fileHandler('index.html')),
    },
    { path: '/docs/start.js', handle: revalidated({ ...JAVASCRIPT, ...REVALIDATE }, fileHandler('start.js')) },
    { path: '/docs/scalar.js', handle: revalidated({ ...JAVASCRIPT, ...CACHE_FOR_AN_HOUR }, fileHandler('scalar.js')) },
  ]
}

/** Returns 304 to a client that already has what `handle` sends. Each encoding has an `ETag` of its own. */
function revalidated(headers: Readonly<Record<string, string>>, handle: (ctx: RequestContext) => Promise<void>): Middleware {
  return async function sendIfChanged(ctx) {
    ctx.vary('Accept-Encoding')
    await handle(ctx)
    // Only now, so that an error is never cached.
    ctx.set(headers)
    if (ctx.fresh) ctx.status = 304
  }
}

/** Streams a file, so that a client that does not read costs no more than one chunk of it. */
function fileHandler(name: string): (ctx: RequestContext) => Promise<void> {
  try {
    accessSync(join(FILES_FOLDER, name))
  } catch (cause) {
    throw new OperatorError(`The docs page is not built: ${join(FILES_FOLDER, name)} is missing. Run npm run build, or set DOCS=off`, {
      cause,
    })
  }
  return async (ctx) => {
    await send(ctx, name, { root: FILES_FOLDER, setHeaders: (_response, _path, stats) => void (ctx.etag = etag(stats)) })
    const file = ctx.body as ReadStream
    // Koa closes the file with the response. A pipelined response whose connection closes before its turn never begins, nor ends.
    ctx.req.once('close', () => file.destroy())
  }
}

/** Generates and compresses a text at the first request for it: every further response shares the same bytes. */
function documentHandler(publicUrl: string, generate: (serverUrl: string) => string): (ctx: RequestContext) => Promise<void> {
  const texts = new LRUCache<string, Encoded>({
    max: CACHED_TEXTS,
    fetchMethod: async (serverUrl) => compress(generate(serverUrl)),
  })
  return async (ctx) => {
    const encoding = acceptedEncoding(ctx)
    const text = (await texts.forceFetch(publicUrl || urlOfConnection(ctx.socket)))[encoding]
    if (encoding !== 'identity') ctx.set('Content-Encoding', encoding)
    ctx.etag = text.etag
    ctx.body = text.bytes
  }
}

async function compress(text: string): Promise<Encoded> {
  const identity = Buffer.from(text)
  const withETag = (bytes: Buffer) => ({ bytes, etag: etag(bytes) })
  const [br, gz] = await Promise.all([promisify(brotliCompress)(identity), promisify(gzip)(identity)])
  return { br: withETag(br), gzip: withETag(gz), identity: withETag(identity) }
}

/** The same choice as for files: the smallest encoding that the client accepts. */
function acceptedEncoding(ctx: RequestContext): Encoding {
  return (['br', 'gzip'] as const).find((encoding) => ctx.acceptsEncodings(encoding, 'identity') === encoding) ?? 'identity'
}

/**
 * The IP address and port at which this connection reached the process. Never the Host header: it is the client's to choose.
 * A connection that the client has closed has no address any more, and nobody reads its response.
 */
function urlOfConnection({ localAddress = 'localhost', localPort = 0 }: Socket): string {
  return toServerUrl(localAddress, localPort)
}
