import { expect } from 'chai'
import type { Sent, TestApi, TestResponse } from '../support/api.js'
import { startApi } from '../support/api.js'
import { exchangeOnce } from '../support/raw-socket.js'
import { issueAmpleKey } from '../support/api.js'

/** Every header that restricts what browsers and caches do. */
const NAMES = [
  'x-content-type-options',
  'content-security-policy',
  'cache-control',
  'referrer-policy',
  'cross-origin-resource-policy',
  'strict-transport-security',
]

const HEADERS = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'strict-transport-security': 'max-age=31536000',
}

/** Revalidated on each use, because they change with a release. */
const DOCUMENT_HEADERS = { ...HEADERS, 'cache-control': 'no-cache' }
const PAGE_HEADERS = {
  ...DOCUMENT_HEADERS,
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}

describe('the security headers', () => {
  let api: TestApi
  let key: string

  before(async () => {
    api = await startApi({ config: { publicUrl: 'https://pets.example' } })
    key = await issueAmpleKey(api)
  })
  after(() => api.stop())

  const securityHeaders = ({ headers }: Pick<TestResponse, 'headers'>) =>
    Object.fromEntries(NAMES.filter((name) => name in headers).map((name) => [name, headers[name]]))

  const cases: [status: number, path: string, headers: object, sent?: Sent][] = [
    [200, '/v1/pets', HEADERS],
    [200, '/v1/pets/1', HEADERS],
    [200, '/v1/store/orders', HEADERS, { method: 'HEAD' }],
    [201, '/v1/pets', HEADERS, { method: 'POST', body: { name: 'Rex', categoryId: 7 } }],
    [204, '/v1/pets', HEADERS, { method: 'OPTIONS' }],
    [400, '/v1/pets?limit=0', HEADERS],
    [401, '/v1/pets', HEADERS, { key: 'rubbish' }],
    [404, '/v1/none', HEADERS],
    [404, '/nowhere', HEADERS],
    [405, '/v1/pets', HEADERS, { method: 'DELETE' }],
    [400, '/livez', HEADERS, { headers: { host: 'a b' } }],
    [200, '/livez', HEADERS],
    [503, '/readyz', HEADERS],
    [200, '/openapi.json', DOCUMENT_HEADERS],
    [200, '/openapi.yaml', DOCUMENT_HEADERS],
    [200, '/docs', PAGE_HEADERS],
    [200, '/docs/start.js', DOCUMENT_HEADERS],
    [200, '/docs/scalar.js', { ...HEADERS, 'cache-control': 'public, max-age=3600' }],
    [405, '/docs', HEADERS, { method: 'POST' }],
  ]
  for (const [status, path, headers, sent = {}] of cases) {
    it(`are complete on ${status} of ${sent.method ?? 'GET'} ${path}`, async () => {
      const response = await api.send(path, { key, ...sent })
      expect(response.status).to.equal(status)
      expect(securityHeaders(response)).to.deep.equal(headers)
    })
  }

  it('are complete on 304 of GET /docs', async () => {
    const { headers } = await api.send('/docs')
    const again = await api.send('/docs', { headers: { 'if-none-match': String(headers['etag']) } })
    expect(again.status).to.equal(304)
    expect(securityHeaders(again)).to.deep.equal(PAGE_HEADERS)
  })

  it('forbid sniffing and storing on the response to bytes that are not HTTP', async () => {
    const rejected = await exchangeOnce(api.url, 'garbage\r\n\r\n')
    expect(rejected.status).to.equal(400)
    expect(rejected.headers).to.include({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' })
  })
})
