import { expect } from 'chai'
import { readConfig } from '../../src/config.js'
import { findLink } from '../support/responses.js'
import type { Sent, TestApi } from '../support/api.js'
import { useApiPerTest, withApi } from '../support/api.js'
import { exchangeOnce, head } from '../support/raw-socket.js'
import { UnreliablePetStore } from '../support/unreliable-pet-store.js'

const GENERATED_ID = /^[0-9a-f-]{36}$/

describe('the log', () => {
  let pets: UnreliablePetStore
  const api = useApiPerTest(() => {
    pets = new UnreliablePetStore()
    return { doubles: { pets } }
  })

  /** The response to a request, and the lines that it caused. */
  async function log(path: string, sent: Sent = {}) {
    const before = api.logLines.length
    const { headers } = await api.send(path, sent)
    return { headers, lines: api.logLines.slice(before) }
  }

  it('has one line per request, with request ID, key ID, route, status and milliseconds', async () => {
    const { key, secret } = await api.issueKey()
    const { headers, lines } = await log('/v1/pets?limit=3', { key: secret })
    expect(lines).to.have.length(1)
    const request = { msg: 'request', level: 30, requestId: headers['x-request-id'], keyId: key.keyId }
    expect(lines[0]).to.include({ ...request, method: 'GET', route: '/v1/pets', status: 200 })
    expect(lines[0]?.['ms']).to.be.a('number').and.to.be.at.least(0)
    expect(lines[0]?.['time']).to.be.a('number')
  })

  const cases: [string, string, Sent, Record<string, unknown>][] = [
    ['the route instead of the pet ID', '/v1/pets/4711', {}, { route: '/v1/pets/{petId}', status: 404, code: 'pet_not_found' }],
    ['no unknown path', '/v1/secret-path', {}, { route: 'none', status: 404, code: 'not_found' }],
    ['no query', '/v1/pets?status=sold&limit=7', {}, { route: '/v1/pets', status: 200 }],
    ['the code of an error', '/v1/pets?hunter2=1', {}, { route: '/v1/pets', status: 400, code: 'invalid_parameter' }],
    ['any method', '/v1/pets', { method: 'PROPFIND' }, { method: 'PROPFIND', route: '/v1/pets', status: 405 }],
    ['OPTIONS', '/v1/pets', { method: 'OPTIONS' }, { method: 'OPTIONS', route: '/v1/pets', status: 204 }],
    ['a new pet', '/v1/pets', { method: 'POST', body: { name: 'Rex', categoryId: 7 } }, { method: 'POST', status: 201 }],
    ['health', '/livez', {}, { route: '/livez', status: 200 }],
  ]
  for (const [what, path, sent, expected] of cases) {
    it(`contains ${what}: ${sent.method ?? 'GET'} ${path}`, async () => {
      const { lines } = await log(path, { key: api.key, ...sent })
      expect(lines).to.have.length(1)
      expect(lines[0]).to.include(expected)
    })
  }

  it('has the trace ID of a valid traceparent header, for any request', async () => {
    const traceId = '0af7651916cd43dd8448eb211c80319c'
    const traceparent = `00-${traceId}-b7ad6b7169203331-00`
    for (const [path, key] of [
      ['/v1/pets', api.key],
      ['/v1/pets', 'rubbish'],
      ['/v1/none', ''],
      ['/livez', ''],
    ] as const) {
      const { lines } = await log(path, { key, headers: { traceparent } })
      expect(lines[0]).to.include({ traceId })
    }
    for (const sent of ['rubbish', [traceparent, traceparent]]) {
      const { lines } = await log('/v1/pets', { key: api.key, headers: { traceparent: sent } })
      expect(lines[0]).to.include({ status: 200 }).and.to.not.have.property('traceId')
    }
  })

  it('has no key ID for an invalid key, and has it for a rejected request', async () => {
    for (const sent of [{}, { key: 'rubbish' }]) {
      const { lines } = await log('/v1/pets', sent)
      expect(lines[0]).to.include({ status: 401 }).and.to.not.have.property('keyId')
    }
    const { key, secret } = await api.issueKey('enterprise', { limits: { minute: 1, day: 1 } })
    await api.send('/v1/pets', { key: secret })
    const { lines } = await log('/v1/pets', { key: secret })
    expect(lines[0]).to.include({ status: 429, keyId: key.keyId, code: 'daily_quota_exceeded' })
  })

  it('has the IP address of the client if its key is invalid or the failure limit is reached, and for no other request', async () => {
    // Once the limit is reached, only verified keys are served.
    await api.call('/v1/pets')
    const { failedAuthenticationsPerMinute } = readConfig({}).plans
    for (let failure = 0; failure < failedAuthenticationsPerMinute; failure += 1) {
      const { lines } = await log('/v1/pets', { key: 'rubbish' })
      expect(lines[0]).to.include({ code: 'invalid_api_key', clientAddress: '127.0.0.1' })
    }
    const { lines: lockedOut } = await log('/v1/pets', { key: 'rubbish' })
    expect(lockedOut[0]).to.include({ code: 'too_many_failed_authentications', clientAddress: '127.0.0.1' })
    for (const sent of [{ key: api.key }, {}]) {
      for (const path of ['/v1/pets', '/v1/none', '/livez']) {
        const { lines } = await log(path, sent)
        expect(JSON.stringify(lines)).to.not.include('127.0.0.1').and.not.include('clientAddress')
      }
    }
  })

  it('has the IPv4 address or the /64 network that the trusted proxy reports, in the form that the failure limit uses', () =>
    withApi({ config: { trustedProxyHops: 1 } }, async (own) => {
      for (const [forwarded, clientAddress] of [
        ['192.0.2.1, 198.51.100.77', '198.51.100.77'],
        ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
      ] as const) {
        await own.send('/v1/pets', { key: 'rubbish', headers: { 'x-forwarded-for': forwarded } })
        expect(own.logLines.at(-1)).to.include({ clientAddress })
      }
    }))

  it('never contains a secret, a body, an ID from a path, a query or a cursor', async () => {
    const { key } = api
    const seen = 'hunter2'
    for (let pet = 0; pet < 3; pet += 1) await api.postPet({ name: `name-${seen}`, categoryId: 7 })
    const next = findLink('next', await api.call('/v1/pets?limit=1')) ?? expect.fail()
    const cursor = new URL(next, api.url).searchParams.get('cursor') ?? expect.fail()
    const before = api.logLines.length

    for (const path of [`pets?cursor=${cursor}`, `pets?cursor=${cursor}x`, 'pets/918273645', `pets/${seen}`, `${seen}?${seen}=${seen}`]) {
      await api.call(`/v1/${path}`)
    }
    await api.send('/v1/pets', { headers: { authorization: `Basic ${seen}`, 'user-agent': seen, cookie: seen } })
    await api.send('/v1/pets', { key: `pst_live_${seen}` })
    await api.send('/v1/pets', { headers: { authorization: [`Bearer ${key}`, `Bearer ${key}`] } })
    await api.postPet({ name: `${seen}\n`, categoryId: seen })
    await api.postPet(`{"${seen}":1,"${seen}":2}`)
    await api.postPet({ name: seen, categoryId: 7 }, { 'idempotency-key': seen })
    await exchangeOnce(api.url, head(`GET /${seen} HTTP/9`, [`Authorization: Bearer ${key}`]))
    pets.failure = new TypeError('unexpected')
    await api.call(`/v1/pets?cursor=${cursor}`)

    const lines = api.logLines.slice(before)
    expect(lines).to.have.length(14)
    const text = JSON.stringify(lines)
    for (const hidden of [key, key.slice(9, 20), seen, cursor, '918273645', 'Bearer', 'Basic']) expect(text).to.not.contain(hidden)
  })

  it('has two lines for a 500 with the same request ID: the error with its stack, and the request', async () => {
    const { key, secret } = await api.issueKey()
    pets.failure = new RangeError('unexpected')
    const { lines } = await log('/v1/pets', { key: secret })
    expect(lines).to.have.length(2)
    const [failure, request] = lines
    expect(failure).to.include({ level: 50, requestId: request?.['requestId'] })
    expect(failure?.['err']).to.include({ type: 'RangeError', message: 'unexpected' })
    expect(failure?.['err'])
      .to.have.property('stack')
      .that.matches(/\n +at .*logs\.test/)
    expect(request).to.include({ status: 500, code: 'internal_error', keyId: key.keyId })
  })

  it('has one line at the level info for a client error', async () => {
    for (const path of ['/v1/pets?limit=0', '/v1/none', '/v1/pets/abc']) {
      const { lines } = await log(path, { key: api.key })
      expect(lines.map(({ level }) => level)).to.deep.equal([30])
    }
  })

  const findWarnings = ({ logLines }: TestApi) => logLines.filter(({ level }) => level === 40)

  for (const [logLevel, messages] of [
    ['warn', ['warn', 'error']],
    ['debug', ['debug', 'info', 'warn', 'error']],
    ['silent', []],
  ] as const) {
    it(`has the messages of the level ${logLevel} and above if LOG_LEVEL is ${logLevel}`, () =>
      withApi({ config: { logLevel } }, async ({ parts, logLines }) => {
        for (const level of ['trace', 'debug', 'info', 'warn', 'error'] as const) parts.log[level](level)
        expect(logLines.map(({ msg }) => msg)).to.deep.equal(messages)
      }))
  }

  it('has one warning if X-Forwarded-For is ignored because TRUSTED_PROXY_HOPS is 0, without its value or a key', async () => {
    const headers = { 'x-forwarded-for': '198.51.100.77' }
    await api.send('/v1/pets')
    expect(findWarnings(api)).to.deep.equal([])
    for (const path of ['/v1/pets', '/livez', '/v1/none']) await api.call(path, { headers })
    const warnings = findWarnings(api)
    expect(warnings).to.have.lengthOf(1)
    expect(warnings[0]).to.have.all.keys('level', 'time', 'msg')
    expect(warnings[0]?.['msg']).to.match(/X-Forwarded-For.*TRUSTED_PROXY_HOPS/)
    expect(JSON.stringify(warnings)).to.not.include('198.51').and.not.include(api.key)
  })

  it('has no such warning if TRUSTED_PROXY_HOPS is 1', () =>
    withApi({ config: { trustedProxyHops: 1 } }, async (own) => {
      await own.send('/v1/pets', { headers: { 'x-forwarded-for': '198.51.100.77' } })
      expect(findWarnings(own)).to.deep.equal([])
    }))

  for (const id of ['a', 'AZ.az_09-', 'x'.repeat(64), '8e03978e-40d5-43e8-bc93-6894a57f9324']) {
    it(`contains the X-Request-Id ${id.slice(0, 40)} of the client, which the response repeats`, async () => {
      for (const path of ['/v1/pets', '/nowhere']) {
        const { headers, lines } = await log(path, { headers: { 'x-request-id': id } })
        expect(headers).to.include({ 'x-request-id': id })
        expect(lines[0]).to.include({ requestId: id })
      }
    })
  }

  for (const id of ['', 'x'.repeat(65), 'a b', 'a"b', 'a,b', '{"a":1}', 'é', '%0a', 'a\tb', ['a', 'b']]) {
    it(`contains a generated ID instead of the invalid X-Request-Id ${JSON.stringify(id).slice(0, 40)}`, async () => {
      const { headers, lines } = await log('/v1/pets', { headers: { 'x-request-id': id } })
      expect(headers['x-request-id']).to.match(GENERATED_ID)
      expect(lines[0]).to.include({ requestId: headers['x-request-id'] })
    })
  }

  it('contains no API key, even if a client sends it as X-Request-Id', async () => {
    const { headers } = await log('/v1/pets', { key: api.key, headers: { 'x-request-id': api.key } })
    expect(headers['x-request-id']).to.match(GENERATED_ID)
    expect(JSON.stringify(api.logLines)).not.to.include(api.key)
  })
})
