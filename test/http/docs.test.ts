import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { expect } from 'chai'
import etag from 'etag'
import { DOCS_CONTENT_SECURITY_POLICY } from '../../src/adapters/http/openapi/docs-routes.js'
import { useApi } from '../support/api.js'
import { head } from '../support/raw-socket.js'
import { until } from '../support/until.js'

const ENCODINGS = ['identity', 'br', 'gzip'] as const
const JAVASCRIPT = 'text/javascript; charset=utf-8'

const DOCS: readonly [path: string, type: string, cacheControl: string][] = [
  ['/docs', 'text/html; charset=utf-8', 'no-cache'],
  ['/docs/start.js', JAVASCRIPT, 'no-cache'],
  ['/docs/scalar.js', JAVASCRIPT, 'public, max-age=3600'],
  ['/openapi.json', 'application/json', 'no-cache'],
  ['/openapi.yaml', 'application/yaml', 'no-cache'],
]

describe('the docs page', () => {
  const api = useApi({ config: { logLevel: 'debug' } })

  it('is HTML without inline scripts, under a policy that allows only its own origin', async () => {
    const page = await api.send('/docs')
    expect(page).to.include({ status: 200 })
    expect(page.headers).to.include({ 'content-security-policy': DOCS_CONTENT_SECURITY_POLICY })
    expect(DOCS_CONTENT_SECURITY_POLICY)
      .to.match(/^default-src 'none'; script-src 'self';/)
      .and.to.not.match(/https?:|\*|unsafe-eval/)
    expect(page.text).to.not.match(/https?:\/\/|<script(?![^>]*\bsrc=")/)
  })

  it('loads its scripts from this service, with the type that a browser requires under nosniff', async () => {
    const page = await api.send('/docs')
    const scripts = [...page.text.matchAll(/<script src="([^"]+)"/g)].map(([, source = '']) => new URL(source, `${api.url}/docs`).pathname)
    expect(scripts).to.deep.equal(['/docs/scalar.js', '/docs/start.js'])
    for (const script of scripts) {
      const response = await api.send(script)
      expect(response).to.include({ status: 200 })
      expect(response.headers).to.include({ 'content-type': JAVASCRIPT, 'x-content-type-options': 'nosniff' })
      expect(response.text).to.have.length.above(20)
    }
  })

  for (const [path, type, cacheControl] of DOCS) {
    describe(path, () => {
      it('is compressed with Brotli, else gzip, for clients that accept it, and has the same content in every encoding', async () => {
        const [plain, br, gzip] = await getInEachEncoding(path)
        expect(plain.headers.has('content-encoding')).to.equal(false)
        expect(br.headers.get('content-encoding')).to.equal('br')
        expect(gzip.headers.get('content-encoding')).to.equal('gzip')
        expect(brotliDecompressSync(br.body).equals(plain.body)).to.equal(true)
        expect(gunzipSync(gzip.body).equals(plain.body)).to.equal(true)
        expect(br.body.length).to.be.below(plain.body.length * 0.6)
        expect((await getRaw(path, { 'accept-encoding': 'gzip, deflate, br' })).headers.get('content-encoding')).to.equal('br')
        expect((await getRaw(path, { 'accept-encoding': 'br;q=0, gzip;q=0' })).headers.has('content-encoding')).to.equal(false)
      })

      it('has Content-Type, Content-Length, Cache-Control and Vary in every encoding', async () => {
        for (const { headers, body } of await getInEachEncoding(path)) {
          expect(headers.get('content-type')).to.equal(type)
          expect(headers.get('content-length')).to.equal(`${body.length}`)
          expect(headers.get('cache-control')).to.equal(cacheControl)
          expect(headers.get('vary')).to.equal('Accept-Encoding')
        }
      })

      it('has a different ETag in each encoding, which revalidates only that encoding', async () => {
        const eTags = (await getInEachEncoding(path)).map(({ headers }) => headers.get('etag') ?? '')
        expect(new Set(eTags)).to.have.property('size', 3)
        for (const [i, encoding] of ENCODINGS.entries()) {
          for (const [j, eTag] of eTags.entries()) {
            const { status, headers, body } = await getRaw(path, { 'accept-encoding': encoding, 'if-none-match': eTag })
            expect(status).to.equal(i === j ? 304 : 200)
            expect(headers.get('etag')).to.equal(eTags[i])
            expect(headers.get('vary')).to.equal('Accept-Encoding')
            expect(headers.get('cache-control')).to.equal(cacheControl)
            if (i === j) expect(body).to.have.length(0)
          }
        }
      })

      it('has an ETag that depends on its bytes alone, so that replicas of one build agree', async () => {
        for (const { headers, body } of await getInEachEncoding(path)) expect(headers.get('etag')).to.equal(etag(body))
      })

      it('has the same headers and no body for HEAD', async () => {
        for (const encoding of ENCODINGS) {
          const [got, headed] = await Promise.all(['GET', 'HEAD'].map((method) => getRaw(path, { 'accept-encoding': encoding }, method)))
          expect(headed?.body).to.have.length(0)
          expect(pickStableHeaders(headed?.headers)).to.deep.equal(pickStableHeaders(got?.headers))
        }
      })
    })
  }

  it('is compressed, but responses of the API never are', async () => {
    const { headers } = await api.call('/v1/pets?limit=100', { headers: { 'accept-encoding': 'br, gzip' } })
    expect(headers).to.not.have.any.keys('content-encoding', 'vary', 'etag')
  })

  it('leaves no file open if a client closes the connection, even for pipelined responses that did not start', async () => {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
    socket.pause()
    socket.write(head('GET /docs/scalar.js HTTP/1.1', ['Host: petstore', 'Accept-Encoding: identity']).repeat(5))
    await until('the service has opened the file', () => countOpenBundles() > 0)
    socket.destroy()
    await once(socket, 'close')
    await until('the service has closed the file', () => countOpenBundles() === 0)
    expect(api.logLines.filter(({ level }) => Number(level) >= 50)).to.deep.equal([])
  })

  interface RawResponse {
    readonly status: number
    readonly headers: Headers
    readonly body: Buffer
  }

  /** `fetch` would decompress the body. */
  async function getRaw(path: string, headers: Readonly<Record<string, string>>, method = 'GET'): Promise<RawResponse> {
    return new Promise((resolve, reject) => {
      const outgoing = request(api.url + path, { method, headers, agent: false })
      outgoing.on('error', reject)
      outgoing.on('response', (incoming) => {
        buffer(incoming).then(
          (body) => resolve({ status: incoming.statusCode ?? 0, headers: new Headers(incoming.headers as Record<string, string>), body }),
          reject,
        )
      })
      outgoing.end()
    })
  }

  async function getInEachEncoding(path: string): Promise<[RawResponse, RawResponse, RawResponse]> {
    return Promise.all(ENCODINGS.map((encoding) => getRaw(path, { 'accept-encoding': encoding }))) as Promise<
      [RawResponse, RawResponse, RawResponse]
    >
  }
})

/** Without the headers that differ between identical requests. */
function pickStableHeaders(headers: Headers | undefined): Record<string, string> {
  return Object.fromEntries([...(headers ?? [])].filter(([name]) => name !== 'x-request-id' && name !== 'date'))
}

/** This process runs the service. */
function countOpenBundles(): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).endsWith('/scalar.js')
    } catch (error) {
      // The file was closed after the directory was read.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
      throw error
    }
  }).length
}
