import type { ReadStream } from 'node:fs'
import { accessSync, constants, readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import etag from 'etag'
import { LRUCache } from 'lru-cache'
import { OperatorError } from '../../../core/errors.js'
import type { RequestContext } from '../pipeline/context.js'
import type { PublicRoute } from '../pipeline/routing.js'
import { toServerUrl } from '../server/server-url.js'
import type { DemoKeyDeps } from './demo-key-route.js'
import { makeDemoKeyRoute } from './demo-key-route.js'
import type { OpenApiInputs } from './openapi.js'

/** `npm run build` creates these files, each with compressed copies (`.br` and `.gz`). */
const FILES_FOLDER = fileURLToPath(new URL('docs/', import.meta.url))

/** The page and the document change with a release, so clients revalidate their copies on each use. */
const REVALIDATE = { 'Cache-Control': 'no-cache' }
const CACHE_FOR_AN_HOUR = { 'Cache-Control': 'public, max-age=3600' }

const HTML = 'text/html; charset=utf-8'
const JAVASCRIPT = 'text/javascript; charset=utf-8'

/**
 * Allows the page's own scripts and styles, and calls to its origin. The component that displays the document sets styles in the page, so
 * those are allowed too. Scripts in the page are not.
 */
export const DOCS_CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

type RouteHandler = PublicRoute['handle']

/** If `PUBLIC_URL` is not set, the document differs for each IP address of this machine, because it contains the server URL. */
const MAX_CACHED_TEXTS = 16

type Encoding = 'br' | 'gzip' | 'identity'

/** The same text in every encoding. */
type EncodedText = Readonly<Record<Encoding, { readonly bytes: Buffer; readonly etag: string }>>

export type DocsDeps = DemoKeyDeps & Pick<OpenApiInputs, 'plans' | 'version'>

/** The OpenAPI document in two formats, and a page that displays it and loads nothing from other origins. */
export function makeDocsRoutes(deps: DocsDeps): PublicRoute[] {
  const { publicUrl, plans, version } = deps
  const makeFormatHandler = (format: 'json' | 'yaml') =>
    makeDocumentHandler(publicUrl, async (serverUrl) => {
      const { renderOpenApiDocument } = await import('./openapi.js')
      return renderOpenApiDocument({ serverUrl, plans, version }, format)
    })
  const toRoute = (path: string, contentType: string, handle: RouteHandler, headers: Readonly<Record<string, string>> = REVALIDATE) => ({
    path,
    handle: withRevalidation({ 'Content-Type': contentType, ...headers }, handle),
  })
  return [
    toRoute('/openapi.json', 'application/json', makeFormatHandler('json')),
    toRoute('/openapi.yaml', 'application/yaml', makeFormatHandler('yaml')),
    toRoute('/docs', HTML, makeFileHandler('index.html'), { ...REVALIDATE, 'Content-Security-Policy': DOCS_CONTENT_SECURITY_POLICY }),
    toRoute('/docs/start.js', JAVASCRIPT, makeFileHandler('start.js')),
    toRoute('/docs/scalar.js', JAVASCRIPT, makeFileHandler('scalar.js'), CACHE_FOR_AN_HOUR),
    makeDemoKeyRoute(deps),
  ]
}

/** Returns 304 if the client already has the response of `handle`. Each encoding has its own `ETag`. */
function withRevalidation(headers: Readonly<Record<string, string>>, handle: RouteHandler): RouteHandler {
  return async (ctx) => {
    ctx.vary('Accept-Encoding')
    await handle(ctx)
    // After `handle`, so that errors are never cached.
    ctx.set(headers)
    if (ctx.fresh) ctx.status = 304
  }
}

/** Streams a file, so that a slow client keeps only one chunk of it in memory. */
function makeFileHandler(name: string): RouteHandler {
  const names = ['', '.br', '.gz'].map((extension) => name + extension)
  names.forEach(requireBuiltFile)
  let etags: ReadonlyMap<string, string> | undefined
  return async (ctx) => {
    const { send } = await import('@koa/send')
    // Computed for the first request, because a file can have several megabytes.
    etags ??= new Map(names.map((file) => [file, etag(readFileSync(join(FILES_FOLDER, file)))]))
    await send(ctx, name, {
      root: FILES_FOLDER,
      setHeaders: (_response, path) => {
        ctx.etag = etags?.get(basename(path)) ?? ''
      },
    })
    const file = ctx.body as ReadStream
    // Koa closes the file when the response closes. A pipelined response that never started emits no `close` when the connection does.
    ctx.req.once('close', () => file.destroy())
  }
}

function requireBuiltFile(name: string): void {
  try {
    accessSync(join(FILES_FOLDER, name), constants.R_OK)
  } catch (cause) {
    throw new OperatorError(`The docs page is not built: ${join(FILES_FOLDER, name)} cannot be read. Run npm run build, or set DOCS=off`, {
      cause,
    })
  }
}

/** Generates and compresses a text when it is first requested. All later responses share its bytes. */
function makeDocumentHandler(publicUrl: string, generate: (serverUrl: string) => Promise<string>): RouteHandler {
  const texts = new LRUCache<string, EncodedText>({
    max: MAX_CACHED_TEXTS,
    fetchMethod: async (serverUrl) => compress(await generate(serverUrl)),
  })
  return async (ctx) => {
    const encoding = chooseEncoding(ctx)
    const text = (await texts.forceFetch(publicUrl || toConnectionUrl(ctx.socket)))[encoding]
    if (encoding !== 'identity') ctx.set('Content-Encoding', encoding)
    ctx.etag = text.etag
    ctx.body = text.bytes
  }
}

async function compress(text: string): Promise<EncodedText> {
  const identity = Buffer.from(text)
  const withETag = (bytes: Buffer) => ({ bytes, etag: etag(bytes) })
  const [br, gz] = await Promise.all([promisify(brotliCompress)(identity), promisify(gzip)(identity)])
  return { br: withETag(br), gzip: withETag(gz), identity: withETag(identity) }
}

/** Chooses the smallest encoding that the client accepts, as `send` does for files. */
function chooseEncoding(ctx: RequestContext): Encoding {
  return (['br', 'gzip'] as const).find((encoding) => ctx.acceptsEncodings(encoding, 'identity') === encoding) ?? 'identity'
}

/**
 * The IP address and port that the client connected to. Never the Host header, which the client controls. A closed connection has no IP
 * address, and its response is never sent.
 */
function toConnectionUrl({ localAddress = 'localhost', localPort = 0 }: Socket): string {
  return toServerUrl(localAddress, localPort)
}
