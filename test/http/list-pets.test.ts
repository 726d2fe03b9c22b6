import { expect } from 'chai'
import type { Pet } from '../../src/core/pet.js'
import { PET_STATUSES } from '../../src/core/pet.js'
import { MemoryPetStore } from '../../src/adapters/memory/memory-pet-store.js'
import type { PetStore } from '../../src/core/ports/pet-store.js'
import { aPet, shuffled } from '../contracts/builders.js'
import { expectError, linkTo } from '../support/responses.js'
import type { TestResponse, TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import { ampleKey, withApi } from '../support/with-api.js'

const SECRET = 'a cursor secret that is long enough'
const PETS = 120

/** Pet n has the status of n modulo three, so that every status is spread over the whole listing. */
const petNumber = (number: number) => aPet({ id: BigInt(number), name: `Pet ${number}`, status: PET_STATUSES[number % 3] ?? 'sold' })

const idsOf = ({ json }: TestResponse) => (json as { id: number }[]).map(({ id }) => id)
const numbersTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1)

describe('GET /v1/pets', () => {
  let api: TestApi
  let key: string

  before(async () => {
    const pets = new MemoryPetStore(shuffled(numbersTo(PETS)).map(petNumber))
    api = await startApi({ config: { cursorSecret: SECRET }, doubles: { pets } })
    key = await ampleKey(api)
  })
  after(() => api.stop())

  const list = (query = '') => api.send(`/v1/pets${query}`, { key })
  const follow = (rel: string, answer: TestResponse) => api.send(linkTo(rel, answer) ?? `(there is no link to ${rel})`, { key })

  async function pagesFrom(path: string): Promise<TestResponse[]> {
    const pages: TestResponse[] = []
    for (let target: string | undefined = path; target !== undefined; target = linkTo('next', pages.at(-1) as TestResponse)) {
      pages.push(await api.send(target, { key }))
    }
    return pages
  }

  it('answers a bare array of pets, each with id, name, categoryId and status', async () => {
    const answer = await list('?limit=1')
    expect(answer.status).to.equal(200)
    expect(answer.headers['content-type']).to.equal('application/json')
    expect(answer.text).to.equal('[{"id":1,"name":"Pet 1","categoryId":7,"status":"pending"}]')
  })

  it('a page holds the first 20 pets in ascending id, unless the caller says otherwise', async () => {
    expect(idsOf(await list())).to.deep.equal(numbersTo(20))
  })

  for (const limit of [1, 2, 99, 100]) {
    it(`limit=${limit} is honoured`, async () => expect(idsOf(await list(`?limit=${limit}`))).to.deep.equal(numbersTo(limit)))
  }

  for (const limit of ['0', '101', '1000', '-1', '1.5', '1e1', '05', '+5', '%205', '', 'abc', '9223372036854775808', 'null']) {
    it(`limit=${limit} is refused and not mended`, async () => {
      const message = expectError(await list(`?limit=${limit}`), 400, 'invalid_parameter')
      expect(message).to.match(/^limit: .*1 to 100/)
    })
  }

  for (const status of PET_STATUSES) {
    it(`status=${status} shows pets of that status only`, async () => {
      const { json } = await list(`?status=${status}&limit=100`)
      expect(json).to.have.length(40)
      expect((json as Pet[]).every((pet) => pet.status === status)).to.equal(true)
    })
  }

  for (const status of ['', 'Available', 'lost', 'available,sold', 'placed']) {
    it(`status=${status} is refused, and the message says which there are`, async () => {
      const message = expectError(await list(`?status=${status}`), 400, 'invalid_parameter')
      expect(message).to.match(/^status: .*available, pending, sold/)
    })
  }

  it('following the next link visits every pet once, in order', async () => {
    const pages = await pagesFrom('/v1/pets?limit=7')
    expect(pages.flatMap(idsOf)).to.deep.equal(numbersTo(PETS))
    expect(pages.map((page) => idsOf(page).length)).to.deep.equal([...new Array(17).fill(7), 1])
  })

  it('following the next link keeps the status filter and the limit', async () => {
    const pages = await pagesFrom('/v1/pets?status=sold&limit=9')
    expect(pages.flatMap(idsOf)).to.deep.equal(numbersTo(PETS).filter((number) => PET_STATUSES[number % 3] === 'sold'))
    expect(pages.map((page) => idsOf(page).length)).to.deep.equal([9, 9, 9, 9, 4])
  })

  it('the last page has no next link, even when it is full', async () => {
    const pages = await pagesFrom('/v1/pets?limit=60')
    expect(pages).to.have.length(2)
    expect(idsOf(pages[1] as TestResponse)).to.have.length(60)
    expect(linkTo('next', pages[1] as TestResponse)).to.equal(undefined)
  })

  it('the first page links to the next only; the pages behind it lead back to the first', async () => {
    const first = await list('?limit=50&status=pending')
    const middle = await list('?limit=15&status=pending')
    expect(first.headers).to.not.have.property('link')
    expect(linkTo('first', middle)).to.equal(undefined)
    const second = await follow('next', middle)
    expect(idsOf(await follow('first', second))).to.deep.equal(idsOf(middle))
  })

  it('links are relative, so that no internal address leaks, whatever Host and X-Forwarded-Host say', async () => {
    const answer = await api.send('/v1/pets', { key, headers: { host: 'evil.example', 'x-forwarded-host': 'evil.example' } })
    expect(linkTo('next', answer)).to.match(/^\/v1\/pets\?/)
  })

  it('the limit may change from page to page', async () => {
    const cursor = new URL(linkTo('next', await list('?limit=5')) ?? '', api.url).searchParams.get('cursor')
    expect(idsOf(await list(`?limit=3&cursor=${cursor}`))).to.deep.equal([6, 7, 8])
    expect(idsOf(await list(`?cursor=${cursor}`))).to.deep.equal(numbersTo(25).slice(5))
  })

  it('a filter that nothing matches, and an empty store, are an empty array without links', () =>
    withApi({ config: { hasSampleData: false } }, async (empty, emptyKey) => {
      for (const path of ['/v1/pets', '/v1/pets?status=sold', '/v1/store/orders']) {
        const answer = await empty.send(path, { key: emptyKey })
        expect(answer).to.include({ status: 200, text: '[]' })
        expect(answer.headers).to.not.have.property('link')
      }
    }))

  it('unknown and repeated parameters are refused with every other problem, all of them named', async () => {
    const message = expectError(await list('?limit=0&limit=5&status=lost&Limit=3&$where=1&__proto__=x'), 400, 'invalid_parameter')
    const named = message.split('; ').map((problem) => problem.split(': ')[0])
    expect(named).to.have.members(['limit', 'status', 'Limit', '$where', '__proto__'])
  })

  for (const query of ['?limit=5&limit=5', '?status=sold&status=sold', '?offset=3', '?page=2', '?limit[$gt]=1', '?=', '?constructor=1']) {
    it(`${query} is refused`, async () => void expectError(await list(query), 400, 'invalid_parameter'))
  }

  it('what the caller made up is told back cut and escaped, and the message stays within what the document promises', async () => {
    const unknown = Array.from({ length: 1500 }, (_, index) => index.toString(36)).join('&')
    expect(expectError(await list(`?${'x'.repeat(500)}`), 400, 'invalid_parameter')).to.have.length.below(100)
    expect(expectError(await list('?%22%0A%00'), 400, 'invalid_parameter')).to.match(/^[\x20-\x7e]*$/)
    expect(expectError(await list(`?${unknown}`), 400, 'invalid_parameter')).to.have.length.at.most(10_000)
  })

  it('pets that are added while a caller is paging make no pet appear twice', () => {
    const pets = new MemoryPetStore(numbersTo(10).map((number) => petNumber(number * 10)))
    return withApi({ doubles: { pets } }, async (own, ownKey) => {
      const seen: number[] = []
      let target: string | undefined = '/v1/pets?limit=3'
      for (let page = 1; target !== undefined; page += 1) {
        const answer = await own.send(target, { key: ownKey })
        seen.push(...idsOf(answer))
        target = linkTo('next', answer)
        // One before everything, one among what was seen, one at the end.
        if (page <= 5) await store(pets, petNumber(page), petNumber((seen.at(-1) ?? 0) - 5), petNumber(200 + page))
      }
      expect(seen).to.include.members([...numbersTo(10).map((number) => number * 10), 201, 202])
      expect(seen).to.deep.equal([...new Set(seen)].toSorted((a, b) => a - b))
    })
  })
})

async function store(petStore: PetStore, ...pets: readonly Pet[]): Promise<void> {
  for (const pet of pets) await petStore.insert(pet)
}
