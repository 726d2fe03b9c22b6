import { expect } from 'chai'
import { findLink } from '../support/responses.js'
import type { Sent, TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import { exchangeOnce, head } from '../support/raw-socket.js'
import { UnreliablePetStore } from '../support/unreliable-pet-store.js'
import { issueAmpleKey, withApi } from '../support/api.js'

describe('the log', () => {
  let api: TestApi
  let pets: UnreliablePetStore

  beforeEach(async () => {
    pets = new UnreliablePetStore()
    api = await startApi({ doubles: { pets } })
  })
  afterEach(() => api.stop())

  /** The lines that the request wrote. */
  async function linesOf(path: string, sent: Sent = {}): Promise<Readonly<Record<string, unknown>>[]> {
    const before = api.logLines.length
    await api.send(path, sent)
    return api.logLines.slice(before)
  }

  it('has one line per request, with request id, key id, route, status and milliseconds', async () => {
    const { key, secret } = await api.issueKey()
    const before = api.logLines.length
    const { headers } = await api.send('/v1/pets?limit=3', { key: secret })
    const lines = api.logLines.slice(before)
    expect(lines).to.have.length(1)
    expect(lines[0]).to.include({
      msg: 'request',
      level: 30,
      requestId: headers['x-request-id'],
      keyId: key.keyId,
      method: 'GET',
      route: '/v1/pets',
      status: 200,
    })
    expect(lines[0]?.['ms']).to.be.a('number').and.to.be.at.least(0)
    expect(lines[0]).to.have.property('time').that.is.a('number')
  })

  const forwardedForWarnings = ({ logLines }: TestApi) => logLines.filter(({ level }) => level === 40)

  it('has one warning that X-Forwarded-For is ignored while TRUSTED_PROXY_HOPS is 0, without its value or a key', async () => {
    const { secret } = await api.issueKey()
    const headers = { 'x-forwarded-for': '198.51.100.77' }
    await api.send('/v1/pets')
    expect(forwardedForWarnings(api)).to.deep.equal([])
    for (const path of ['/v1/pets', '/livez', '/v1/none']) await api.send(path, { headers, key: secret })
    const warnings = forwardedForWarnings(api)
    expect(warnings).to.have.lengthOf(1)
    expect(warnings[0]).to.have.all.keys('level', 'time', 'msg')
    expect(warnings[0]?.['msg']).to.match(/X-Forwarded-For.*set TRUSTED_PROXY_HOPS to the number of proxies/)
    expect(JSON.stringify(warnings)).to.not.include('198.51').and.not.include(secret)
  })

  it('has no such warning if TRUSTED_PROXY_HOPS is 1', () =>
    withApi({ config: { trustedProxyHops: 1 } }, async (own) => {
      await own.send('/v1/pets', { headers: { 'x-forwarded-for': '198.51.100.77' } })
      expect(forwardedForWarnings(own)).to.deep.equal([])
    }))

  it('has no API key, also where one was sent as request id', async () => {
    const { secret } = await api.issueKey()
    const { headers } = await api.send('/v1/pets', { key: secret, headers: { 'x-request-id': secret } })
    expect(headers['x-request-id']).to.match(/^[0-9a-f-]{36}$/)
    expect(JSON.stringify(api.logLines)).not.to.include(secret)
  })

  const cases: [string, string, Sent, Record<string, unknown>][] = [
    ['a pet by its template, not by its id', '/v1/pets/4711', {}, { route: '/v1/pets/{petId}', status: 404, code: 'pet_not_found' }],
    ['the path that nothing is at as none', '/v1/secret-path', {}, { route: 'none', status: 404, code: 'not_found' }],
    ['a listing without its query', '/v1/pets?status=sold&limit=7', {}, { route: '/v1/pets', status: 200 }],
    ['a refused parameter by its code', '/v1/pets?hunter2=hunter2', {}, { route: '/v1/pets', status: 400, code: 'invalid_parameter' }],
    ['405', '/v1/pets', { method: 'PROPFIND' }, { method: 'PROPFIND', route: '/v1/pets', status: 405, code: 'method_not_allowed' }],
    ['OPTIONS', '/v1/pets', { method: 'OPTIONS' }, { method: 'OPTIONS', route: '/v1/pets', status: 204 }],
    ['a new pet', '/v1/pets', { method: 'POST', body: { name: 'Rex', categoryId: 7 } }, { method: 'POST', status: 201 }],
    ['health', '/livez', {}, { route: '/livez', status: 200 }],
  ]
  for (const [what, path, sent, wanted] of cases) {
    it(`tells ${what}`, async () => {
      const lines = await linesOf(path, { key: await issueAmpleKey(api), ...sent })
      expect(lines).to.have.length(1)
      expect(lines[0]).to.include(wanted)
    })
  }

  it('names no key where none was verified, and names it where it was refused for its quota', async () => {
    for (const sent of [{}, { key: 'rubbish' }]) {
      const [line] = await linesOf('/v1/pets', sent)
      expect(line).to.include({ status: 401 }).and.to.not.have.property('keyId')
    }
    const { key, secret } = await api.issueKey('enterprise', { limits: { minute: 1, day: 1 } })
    await api.send('/v1/pets', { key: secret })
    const [line] = await linesOf('/v1/pets', { key: secret })
    expect(line).to.include({ status: 429, keyId: key.keyId, code: 'daily_quota_exceeded' })
  })

  it('never holds a secret, a body, an id from a path, a query or a cursor', async () => {
    const key = await issueAmpleKey(api)
    const seen = 'hunter2'
    for (let pet = 0; pet < 3; pet += 1) await api.send('/v1/pets', { method: 'POST', key, body: { name: `name-${seen}`, categoryId: 7 } })
    const cursor = new URL(findLink('next', await api.send('/v1/pets?limit=1', { key })) ?? '', api.url).searchParams.get('cursor') ?? ''
    const before = api.logLines.length

    await api.send(`/v1/pets?cursor=${cursor}`, { key })
    await api.send(`/v1/pets?cursor=${cursor}x`, { key })
    await api.send('/v1/pets/918273645', { key })
    await api.send(`/v1/pets/${seen}`, { key })
    await api.send(`/v1/${seen}?${seen}=${seen}`, { key })
    await api.send('/v1/pets', { headers: { authorization: `Basic ${seen}`, 'user-agent': seen, cookie: seen } })
    await api.send('/v1/pets', { key: `pst_live_${seen}` })
    await api.send('/v1/pets', { headers: { authorization: [`Bearer ${key}`, `Bearer ${key}`] } })
    await api.send('/v1/pets', { method: 'POST', key, body: { name: `${seen}\n`, categoryId: seen } })
    await api.send('/v1/pets', { method: 'POST', key, headers: { 'content-type': 'application/json' }, body: `{"${seen}":1,"${seen}":2}` })
    await api.send('/v1/pets', { method: 'POST', key, headers: { 'idempotency-key': seen }, body: { name: seen, categoryId: 7 } })
    await exchangeOnce(api.url, head(`GET /${seen} HTTP/9`, [`Authorization: Bearer ${key}`]))
    pets.failure = new TypeError('a surprise')
    await api.send(`/v1/pets?cursor=${cursor}`, { key })

    const lines = api.logLines.slice(before)
    expect(lines).to.have.length(14)
    const text = JSON.stringify(lines)
    for (const hidden of [key, key.slice(9, 20), seen, cursor, '918273645', 'Bearer', 'Basic']) expect(text).to.not.contain(hidden)
  })

  it('tells a 500 in two lines of one request id: what failed, with its stack, and the request', async () => {
    const { key, secret } = await api.issueKey()
    pets.failure = new RangeError('a surprise')
    const lines = await linesOf('/v1/pets', { key: secret })
    expect(lines).to.have.length(2)
    const [failure, request] = lines
    expect(failure).to.include({ level: 50, requestId: request?.['requestId'] })
    expect(failure?.['err']).to.include({ type: 'RangeError', message: 'a surprise' })
    expect(failure?.['err'])
      .to.have.property('stack')
      .that.matches(/\n +at .*logs\.test/)
    expect(request).to.include({ status: 500, code: 'internal_error', keyId: key.keyId })
  })

  it('tells a problem of the caller in one line that is no error', async () => {
    const key = await issueAmpleKey(api)
    for (const path of ['/v1/pets?limit=0', '/v1/none', '/v1/pets/abc']) {
      const lines = await linesOf(path, { key })
      expect(lines.map(({ level }) => level)).to.deep.equal([30])
    }
  })

  describe('X-Request-Id', () => {
    for (const id of ['a', 'AZ.az_09-', 'x'.repeat(64), '8e03978e-40d5-43e8-bc93-6894a57f9324']) {
      it(`of ${id.slice(0, 40)} is taken over, returned and logged`, async () => {
        const [line] = await linesOf('/v1/pets', { headers: { 'x-request-id': id } })
        expect(line).to.include({ requestId: id })
        expect((await api.send('/nowhere', { headers: { 'x-request-id': id } })).headers).to.include({ 'x-request-id': id })
      })
    }

    for (const id of ['', 'x'.repeat(65), 'a b', 'a"b', 'a,b', '{"a":1}', 'é', '%0a', 'a\tb']) {
      it(`of ${JSON.stringify(id.slice(0, 40))} is replaced: it is not fit for logs`, async () => {
        const { headers } = await api.send('/v1/pets', { headers: { 'x-request-id': id } })
        expect(headers['x-request-id']).to.match(/^[0-9a-f-]{36}$/)
        expect(api.logLines.at(-1)).to.include({ requestId: headers['x-request-id'] })
      })
    }

    it('sent twice is replaced', async () => {
      const { headers } = await api.send('/v1/pets', { headers: { 'x-request-id': ['a', 'b'] } })
      expect(headers['x-request-id']).to.match(/^[0-9a-f-]{36}$/)
    })
  })
})
