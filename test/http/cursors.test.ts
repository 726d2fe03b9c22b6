import { expect } from 'chai'
import { expectError, findLink } from '../support/responses.js'
import type { TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import { issueAmpleKey, withApi } from '../support/api.js'

const SECRET = 'a cursor secret that is long enough'

describe('a cursor', () => {
  let api: TestApi
  let key: string
  let cursor: string

  before(async () => {
    api = await startApi({ config: { cursorSecret: SECRET } })
    key = await issueAmpleKey(api)
    cursor = await cursorOf(api, key, '/v1/pets?limit=3')
  })
  after(() => api.stop())

  const list = (query: string) => api.send(`/v1/pets?${query}`, { key })

  it('is at most 200 characters that need no escaping in a URL', () => {
    expect(cursor).to.match(/^[A-Za-z0-9_-]{1,200}$/)
  })

  it('is another one each time, so that nothing can be read from it', async () => {
    expect(await cursorOf(api, key, '/v1/pets?limit=3')).to.not.equal(cursor)
  })

  it('works any number of times', async () => {
    const [first, second] = [await list(`cursor=${cursor}`), await list(`cursor=${cursor}`)]
    expect(first.status).to.equal(200)
    expect(second.text).to.equal(first.text)
  })

  for (const [given, used] of [
    ['/v1/pets?limit=3', '/v1/pets?status=available'],
    ['/v1/pets?limit=3&status=available', '/v1/pets?limit=3'],
    ['/v1/pets?limit=1&status=available', '/v1/pets?status=sold'],
    ['/v1/pets?limit=3', '/v1/store/orders?limit=3'],
    ['/v1/store/orders?limit=3', '/v1/pets?limit=3'],
  ] as const) {
    it(`given out for ${given} is refused at ${used}`, async () => {
      const foreign = await cursorOf(api, key, given)
      expectError(await api.send(`${used}&cursor=${foreign}`, { key }), 400, 'invalid_cursor')
    })
  }

  it('with any one of its characters changed, left out or doubled is refused', async () => {
    for (let index = 0; index < cursor.length; index += 1) {
      const [before, after] = [cursor.slice(0, index), cursor.slice(index + 1)]
      const other = cursor[index] === 'A' ? 'B' : 'A'
      for (const forged of [before + other + after, before + after, `${before}${cursor[index]}${cursor[index]}${after}`]) {
        if (forged !== cursor) expectError(await list(`cursor=${forged}`), 400, 'invalid_cursor')
      }
    }
  })

  for (const garbage of [
    '',
    'x',
    '0',
    '10',
    'null',
    '%00',
    '%F0%9F%90%B6',
    '....',
    'e30',
    'A'.repeat(38),
    'A'.repeat(5000),
    'eyJhZnRlciI6IjEifQ',
  ]) {
    it(`"${garbage.slice(0, 40)}" (${garbage.length} characters) is none`, async () =>
      void expectError(await list(`cursor=${garbage}`), 400, 'invalid_cursor'))
  }

  for (const appended of ['=', '%20', '%0A', '!', '%3D%3D']) {
    it(`with ${appended} behind it is refused: it has one spelling`, async () =>
      void expectError(await list(`cursor=${cursor}${appended}`), 400, 'invalid_cursor'))
  }

  it('works on another replica with the same CURSOR_SECRET', () =>
    withApi({ config: { cursorSecret: SECRET } }, async (replica, replicaKey) => {
      const there = await replica.send(`/v1/pets?limit=3&cursor=${cursor}`, { key: replicaKey })
      expect(there.text).to.equal((await list(`limit=3&cursor=${cursor}`)).text)
    }))

  for (const [secret, config] of Object.entries({ 'another CURSOR_SECRET': { cursorSecret: `${SECRET}.` }, 'no CURSOR_SECRET': {} })) {
    it(`is refused by a process with ${secret}`, () =>
      withApi({ config }, async (replica, replicaKey) => {
        expectError(await replica.send(`/v1/pets?cursor=${cursor}`, { key: replicaKey }), 400, 'invalid_cursor')
      }))
  }

  it('is refused beside a bad parameter, which is named', async () => {
    expect(expectError(await list('limit=0&cursor=x'), 400, 'invalid_parameter')).to.match(/^limit: /)
  })
})

describe('PUBLIC_URL', () => {
  it('makes Link and Location absolute, on every operation', () =>
    withApi({ config: { publicUrl: 'https://pets.example/shop' } }, async (api, key) => {
      const listed = await api.send('/v1/pets?limit=2', { key })
      const second = await api.send(`/v1/pets?limit=2&cursor=${await cursorOf(api, key, '/v1/pets?limit=2')}`, { key })
      const created = await api.send('/v1/pets', { method: 'POST', key, body: { name: 'Rex', categoryId: 7 } })
      expect(findLink('next', listed)).to.match(/^https:\/\/pets\.example\/shop\/v1\/pets\?limit=2&cursor=/)
      expect(findLink('first', second)).to.equal('https://pets.example/shop/v1/pets?limit=2')
      expect(findLink('next', await api.send('/v1/store/orders?limit=2', { key }))).to.match(
        /^https:\/\/pets\.example\/shop\/v1\/store\/orders\?/,
      )
      expect(created.headers.location).to.equal('https://pets.example/shop/v1/pets/11')
      expect(findLink('successor-version', await api.send('/v1/pets/1', { key }))).to.equal('https://pets.example/shop/v1/pets')
    }))
})

async function cursorOf(api: TestApi, key: string, path: string): Promise<string> {
  const next = findLink('next', await api.send(path, { key }))
  return new URL(next ?? '', api.url).searchParams.get('cursor') ?? ''
}
