import { expect } from 'chai'
import { MemoryOrderStore } from '../../src/adapters/memory/memory-order-store.js'
import { MemoryPetStore } from '../../src/adapters/memory/memory-pet-store.js'
import { ORDER_STATUSES } from '../../src/core/order.js'
import { PET_STATUSES } from '../../src/core/pet.js'
import { anOrder, aPet, shuffled } from '../support/builders.js'
import { expectError, findLink } from '../support/responses.js'
import type { TestApi, TestResponse } from '../support/api.js'
import { useApi, withApi } from '../support/api.js'

const SECRET = 'a cursor secret that is long enough'
const ROWS = 120

const listNumbersTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1)
const pickStatus = <Status>(statuses: readonly Status[], number: number) => statuses[number % statuses.length] as Status
const makePet = (number: number) => aPet({ id: BigInt(number), status: pickStatus(PET_STATUSES, number) })
const makeOrder = (number: number) => anOrder({ id: BigInt(number), status: pickStatus(ORDER_STATUSES, number) })

const readIds = ({ json }: TestResponse) => (json as { id: number }[]).map(({ id }) => id)

async function issueCursor(api: TestApi, key: string, path: string): Promise<string> {
  const response = await api.send(path, { key })
  return new URL(findLink('next', response) ?? expect.fail(response.text), api.url).searchParams.get('cursor') ?? expect.fail()
}

/** The stored rows are in random order, and every status is spread over all of them. */
const STORES = {
  pets: new MemoryPetStore(shuffled(listNumbersTo(ROWS)).map(makePet)),
  orders: new MemoryOrderStore(shuffled(listNumbersTo(ROWS)).map(makeOrder)),
}

for (const [path, statuses] of [
  ['/v1/pets', PET_STATUSES],
  ['/v1/store/orders', ORDER_STATUSES],
] as const) {
  describe(`GET ${path}`, () => {
    const api = useApi({ config: { cursorSecrets: [SECRET] }, doubles: STORES })
    const list = (query = '') => api.call(`${path}?${query}`)

    async function listPages(query: string): Promise<number[][]> {
      const pages: number[][] = []
      for (let target: string | undefined = `${path}?${query}`; target !== undefined; ) {
        const page: TestResponse = await api.call(target)
        pages.push(readIds(page))
        target = findLink('next', page)
      }
      return pages
    }

    it('returns the first 20 in ascending order of ID by default', async () => {
      expect(readIds(await api.call(path))).to.deep.equal(listNumbersTo(20))
    })

    for (const limit of [1, 2, 99, 100]) {
      it(`returns ${limit} with limit=${limit}`, async () =>
        expect(readIds(await list(`limit=${limit}`))).to.deep.equal(listNumbersTo(limit)))
    }

    for (const limit of ' 0 101 1000 -1 1.5 1e1 05 +5 %205 abc 9223372036854775808 null'.split(' ')) {
      it(`returns 400 for limit=${limit}`, async () => {
        expect(expectError(await list(`limit=${limit}`), 400, 'invalid_parameter')).to.match(/^limit: .*1 to 100/)
      })
    }

    for (const status of statuses) {
      it(`returns only rows with the status with status=${status}`, async () => {
        const { json } = await list(`status=${status}&limit=100`)
        expect(json).to.have.length(ROWS / 3)
        expect((json as { status: string }[]).every((row) => row.status === status)).to.equal(true)
      })
    }

    for (const status of ['', 'Sold', 'lost', statuses.join(','), statuses === PET_STATUSES ? 'placed' : 'sold']) {
      it(`returns 400 for status=${status}, and the message lists the valid ones`, async () => {
        const message = expectError(await list(`status=${status}`), 400, 'invalid_parameter')
        expect(message)
          .to.match(/^status: /)
          .and.to.include(statuses.join(', '))
      })
    }

    it('returns every row once, in order, to a client that follows the next links', async () => {
      const pages = await listPages('limit=7')
      expect(pages.flat()).to.deep.equal(listNumbersTo(ROWS))
      expect(pages.map(({ length }) => length)).to.deep.equal([...new Array(17).fill(7), 1])
    })

    it('keeps the status and the limit in the next links', async () => {
      const pages = await listPages(`limit=9&status=${statuses[2]}`)
      expect(pages.flat()).to.deep.equal(listNumbersTo(ROWS).filter((number) => number % 3 === 2))
      expect(pages.map(({ length }) => length)).to.deep.equal([9, 9, 9, 9, 4])
    })

    it('has no next link on the last page, even if that page is full', async () => {
      expect((await listPages('limit=60')).map(({ length }) => length)).to.deep.equal([60, 60])
      expect((await list(`limit=50&status=${statuses[1]}`)).headers).to.not.have.property('link')
    })

    it('has a first link on every page but the first', async () => {
      const first = await list('limit=15')
      expect(findLink('first', first)).to.equal(undefined)
      const second = await api.call(findLink('next', first) ?? expect.fail())
      expect(readIds(await api.call(findLink('first', second) ?? expect.fail()))).to.deep.equal(readIds(first))
    })

    it('accepts a different limit on the next page', async () => {
      const cursor = await issueCursor(api, api.key, `${path}?limit=5`)
      expect(readIds(await list(`limit=3&cursor=${cursor}`))).to.deep.equal([6, 7, 8])
      expect(readIds(await list(`cursor=${cursor}`))).to.deep.equal(listNumbersTo(25).slice(5))
    })

    it('has relative links, regardless of Host and X-Forwarded-Host', async () => {
      const headers = { host: 'evil.example', 'x-forwarded-host': 'evil.example' }
      expect(findLink('next', await api.call(path, { headers }))).to.match(new RegExp(`^${path}\\?`))
    })

    it('names every unknown, repeated and invalid parameter', async () => {
      const message = expectError(await list('limit=0&limit=5&status=lost&Limit=3&$where=1&__proto__=x'), 400, 'invalid_parameter')
      const named = message.split('; ').map((problem) => problem.split(': ')[0])
      expect(named).to.have.members(['limit', 'status', 'Limit', '$where', '__proto__'])
      expect(expectError(await list('limit=0&cursor=x'), 400, 'invalid_parameter')).to.match(/^limit: /)
    })

    for (const query of ['limit=5&limit=5', 'status=sold&status=sold', 'offset=3', 'page=2', 'limit[$gt]=1', '=', 'constructor=1']) {
      it(`returns 400 for ?${query}`, async () => void expectError(await list(query), 400, 'invalid_parameter'))
    }

    it('truncates and escapes unknown parameters in the message, which has at most the documented 10,000 characters', async () => {
      const unknown = Array.from({ length: 1500 }, (_, index) => index.toString(36)).join('&')
      expect(expectError(await list('x'.repeat(500)), 400, 'invalid_parameter')).to.have.length.below(100)
      expect(expectError(await list('%22%0A%00'), 400, 'invalid_parameter')).to.match(/^[\x20-\x7e]*$/)
      expect(expectError(await list(unknown), 400, 'invalid_parameter')).to.have.length.at.most(10_000)
    })

    it('names up to 20 problems in the message, and counts the others', async () => {
      const problemsFor = async (count: number) => {
        const query = Array.from({ length: count }, (_, index) => `x${index}`).join('&')
        return expectError(await list(query), 400, 'invalid_parameter').split('; ')
      }
      expect((await problemsFor(20)).at(-1)).to.equal('x19: unknown parameter')
      expect((await problemsFor(22)).slice(-2)).to.deep.equal(['x19: unknown parameter', 'and 2 more'])
    })

    it('returns an empty array without links if nothing matches', () =>
      withApi({ config: { hasSampleData: false } }, async (empty, key) => {
        for (const query of ['', `?status=${statuses[0]}`]) {
          const response = await empty.send(path + query, { key })
          expect(response).to.include({ status: 200, text: '[]' })
          expect(response.headers).to.not.have.property('link')
        }
      }))
  })
}

describe('a cursor', () => {
  const api = useApi({ config: { cursorSecrets: [SECRET] } })
  let cursor: string

  before(async () => {
    cursor = await issueCursor(api, api.key, '/v1/pets?limit=3')
  })

  const expectInvalid = async (given: string) => void expectError(await api.call(`/v1/pets?cursor=${given}`), 400, 'invalid_cursor')

  it('has at most 200 characters that need no escaping in a URL', () => {
    expect(cursor).to.match(/^[A-Za-z0-9_-]{1,200}$/)
  })

  it('can be used repeatedly', async () => {
    const [first, second] = [await api.call(`/v1/pets?cursor=${cursor}`), await api.call(`/v1/pets?cursor=${cursor}`)]
    expect(first.status).to.equal(200)
    expect(second.text).to.equal(first.text)
  })

  for (const [issuedFor, usedFor] of [
    ['/v1/pets?limit=3', '/v1/pets?status=available'],
    ['/v1/pets?limit=3&status=available', '/v1/pets?limit=3'],
    ['/v1/pets?limit=1&status=available', '/v1/pets?status=sold'],
    ['/v1/pets?limit=3', '/v1/store/orders?limit=3'],
    ['/v1/store/orders?limit=3', '/v1/pets?limit=3'],
  ] as const) {
    it(`of ${issuedFor} is invalid for ${usedFor}`, async () => {
      const other = await issueCursor(api, api.key, issuedFor)
      expectError(await api.call(`${usedFor}&cursor=${other}`), 400, 'invalid_cursor')
    })
  }

  it('is invalid with any character replaced, removed or repeated', async () => {
    for (let index = 0; index < cursor.length; index += 1) {
      const [before, after] = [cursor.slice(0, index), cursor.slice(index + 1)]
      const other = cursor[index] === 'A' ? 'B' : 'A'
      for (const forged of [before + other + after, before + after, `${before}${cursor[index]}${cursor[index]}${after}`]) {
        if (forged !== cursor) await expectInvalid(forged)
      }
    }
  })

  for (const garbage of [...' x 0 10 null %00 %F0%9F%90%B6 .... e30 eyJhZnRlciI6IjEifQ'.split(' '), 'A'.repeat(38), 'A'.repeat(5000)]) {
    it(`is not "${garbage.slice(0, 40)}" (${garbage.length} characters)`, () => expectInvalid(garbage))
  }

  for (const suffix of ['=', '%20', '%0A', '!', '%3D%3D']) {
    it(`is invalid with ${suffix} at its end`, () => expectInvalid(cursor + suffix))
  }

  for (const [what, config, status] of [
    ['the same CURSOR_SECRET', { cursorSecrets: [SECRET] }, 200],
    ['the same CURSOR_SECRET after a new one', { cursorSecrets: [`${SECRET}.`, SECRET] }, 200],
    ['another CURSOR_SECRET', { cursorSecrets: [`${SECRET}.`] }, 400],
    ['no CURSOR_SECRET', {}, 400],
  ] as const) {
    it(`is ${status === 200 ? 'valid' : 'invalid'} on a replica with ${what}`, () =>
      withApi({ config }, async (replica, key) => {
        const path = `/v1/pets?limit=3&cursor=${cursor}`
        const response = await replica.send(path, { key })
        if (status === 200) expect(response).to.include({ status, text: (await api.call(path)).text })
        else expectError(response, status, 'invalid_cursor')
      }))
  }
})

describe('the list of pets', () => {
  it('contains no pet twice and misses none even if pets are added while a client follows the next links', () => {
    const pets = new MemoryPetStore(listNumbersTo(10).map((number) => makePet(number * 10)))
    return withApi({ doubles: { pets } }, async (api, key) => {
      const seen: number[] = []
      let target: string | undefined = '/v1/pets?limit=3'
      for (let page = 1; target !== undefined; page += 1) {
        const response = await api.send(target, { key })
        seen.push(...readIds(response))
        target = findLink('next', response)
        // Before all pets, among those already listed, and after all.
        if (page <= 5) for (const number of [page, (seen.at(-1) ?? 0) - 5, 200 + page]) await pets.insert(makePet(number))
      }
      expect(seen).to.include.members([...listNumbersTo(10).map((number) => number * 10), 201, 202])
      expect(seen).to.deep.equal([...new Set(seen)].toSorted((a, b) => a - b))
    })
  })

  it('has absolute links and Location if PUBLIC_URL is set, and so have the other operations', () =>
    withApi({ config: { publicUrl: 'https://pets.example/shop' } }, async (api, key) => {
      const listed = await api.send('/v1/pets?limit=2', { key })
      const second = await api.send(`/v1/pets?limit=2&cursor=${await issueCursor(api, key, '/v1/pets?limit=2')}`, { key })
      const orders = await api.send('/v1/store/orders?limit=2', { key })
      const created = await api.send('/v1/pets', { method: 'POST', key, body: { name: 'Rex', categoryId: 7 } })
      expect(findLink('next', listed)).to.match(/^https:\/\/pets\.example\/shop\/v1\/pets\?limit=2&cursor=/)
      expect(findLink('first', second)).to.equal('https://pets.example/shop/v1/pets?limit=2')
      expect(findLink('next', orders)).to.match(/^https:\/\/pets\.example\/shop\/v1\/store\/orders\?/)
      expect(created.headers.location).to.equal('https://pets.example/shop/v1/pets/11')
      expect(findLink('successor-version', await api.send('/v1/pets/1', { key }))).to.equal('https://pets.example/shop/v1/pets')
    }))
})
