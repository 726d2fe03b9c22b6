import { expect } from 'chai'
import { expectError } from '../support/responses.js'
import type { TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import { issueAmpleKey } from '../support/api.js'

const DOG = '\u{1f415}'

describe('POST /v1/pets', () => {
  let api: TestApi
  let key: string

  before(async () => {
    api = await startApi()
    key = await issueAmpleKey(api)
  })
  after(() => api.stop())

  const post = (body: unknown) => api.send('/v1/pets', { method: 'POST', key, headers: { 'content-type': 'application/json' }, body })
  const postNamed = (name: unknown) => post({ name, categoryId: 7 })

  it('adds a pet and answers 201 with the pet and its address', async () => {
    const created = await post({ name: 'Rex', categoryId: 7, status: 'pending' })
    expect(created.status).to.equal(201)
    expect(created.headers['content-type']).to.equal('application/json')
    expect(created.json).to.deep.equal({ id: 11, name: 'Rex', categoryId: 7, status: 'pending' })
    expect(created.headers.location).to.equal('/v1/pets/11')
    expect((await api.send('/v1/pets/11', { key })).text).to.equal(created.text)
  })

  it('a new pet is on the list from then on, under its status only', async () => {
    const { id } = (await post({ name: 'Listed', categoryId: 7, status: 'sold' })).json
    const ids = async (query: string) => (await api.send(`/v1/pets?limit=100${query}`, { key })).json.map((pet: { id: number }) => pet.id)
    expect(await ids('')).to.include(id)
    expect(await ids('&status=sold')).to.include(id)
    expect(await ids('&status=available')).to.not.include(id)
  })

  it('ids go up and are never used twice', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => postNamed('Rex')))
    const ids = answers.map(({ json }) => json.id as number)
    expect(new Set(ids)).to.have.property('size', 20)
    expect((await postNamed('Rex')).json.id).to.be.above(Math.max(...ids))
  })

  it('a pet without a status is available', async () => expect((await postNamed('Rex')).json.status).to.equal('available'))

  for (const status of ['available', 'pending', 'sold']) {
    it(`the status ${status} is kept`, async () =>
      expect((await post({ name: 'Rex', categoryId: 7, status })).json.status).to.equal(status))
  }

  it('unknown fields are ignored, and an id among them does not set the id', async () => {
    const created = await post({
      id: 4,
      name: 'Rex',
      categoryId: 7,
      tags: ['good'],
      owner: { name: 'Ann' },
      constructor: 1,
      toString: null,
    })
    expect(created.status).to.equal(201)
    expect(created.json).to.have.all.keys('id', 'name', 'categoryId', 'status')
    expect(created.json.id).to.be.above(10)
  })

  it('fields are written in one order, whatever order they came in', async () => {
    expect((await post({ status: 'sold', categoryId: 1, name: 'Rex' })).text).to.match(
      /^\{"id":\d+,"name":"Rex","categoryId":1,"status":"sold"\}$/,
    )
  })

  const faulty: [string, unknown, RegExp][] = [
    ['an empty object', {}, /^name: is required; categoryId: is required$/],
    [
      'three problems',
      { name: '', categoryId: '7', status: 'lost' },
      /^name: must [^;]+; categoryId: must [^;]+; status: must be one of available, pending, sold$/,
    ],
    [
      'problems in another order',
      { status: 1, categoryId: null, name: 5 },
      /^name: must [^;]+; categoryId: must [^;]+; status: must [^;]+$/,
    ],
    ['the last field alone', { name: 'Rex', categoryId: 7, status: 'SOLD' }, /^status: must be one of available, pending, sold$/],
    ['a status of null', { name: 'Rex', categoryId: 7, status: null }, /^status: must [^;]+$/],
    ['a missing name', { categoryId: 7 }, /^name: is required$/],
    ['a missing category', { name: 'Rex' }, /^categoryId: is required$/],
  ]
  for (const [what, body, message] of faulty) {
    it(`${what} is refused, every failing field named in order`, async () => {
      expect(expectError(await post(body), 400, 'validation_failed')).to.match(message)
    })
  }

  for (const body of ['[]', 'null', '7', 'true', '"Rex"', '[{"name":"Rex","categoryId":7}]']) {
    it(`${body} is JSON, but no pet`, async () => {
      expect(expectError(await post(body), 400, 'validation_failed')).to.match(/^body: must be a JSON object$/)
    })
  }

  it('a refused pet is not added', async () => {
    const count = async () => (await api.send('/v1/pets?limit=100', { key })).json.length as number
    const before = await count()
    await post({ name: 'Rex', categoryId: 7, status: 'lost' })
    expect(await count()).to.equal(before)
  })

  for (const path of ['/v1/pets?x=1', '/v1/pets?status=sold', '/v1/pets?limit=5&limit=5']) {
    it(`POST ${path} is refused: it knows no query parameters`, async () => {
      expectError(await api.send(path, { method: 'POST', key, body: { name: 'Rex', categoryId: 7 } }), 400, 'invalid_parameter')
    })
  }

  describe('the name', () => {
    for (const [what, name] of Object.entries({
      'one character': 'R',
      '200 characters': 'x'.repeat(200),
      '200 emoji, of two code units each': DOG.repeat(200),
      'emoji joined to one picture': '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}',
      'letters of many alphabets': 'Ærøskøbing Žižka Ωμέγα 小狗 كلب',
      'combining marks': 'e\u0301',
      'quotes, backslashes and slashes': 'a"b\\c/d\'e',
      'markup and operators': '<script>{{$where}} ${x}; DROP TABLE',
      'line separators of Unicode, inside': 'a\u2028b',
      'the word null': 'null',
      'the replacement character': '\ufffd',
    })) {
      it(`may be ${what}, and comes back unchanged`, async () => {
        const created = await postNamed(name)
        expect(created.status).to.equal(201)
        expect(created.json.name).to.equal(name)
        expect((await api.send(created.headers.location ?? '', { key })).json.name).to.equal(name)
      })
    }

    for (const [what, name] of Object.entries({
      empty: '',
      'white space only': ' \t\r\n\u00a0\u3000',
      '201 characters': 'x'.repeat(201),
      '201 emoji': DOG.repeat(201),
      'long beyond measure': 'x'.repeat(60_000),
      'with a zero byte': 'a\u0000b',
      'with a bell': 'a\u0007b',
      'with a line break inside': 'a\nb',
      'with a tab inside': 'a\tb',
      'with DEL': 'a\u007fb',
      'with a C1 control character': 'a\u0085b',
      'a number': 7,
      null: null,
      true: true,
      'a list': ['Rex'],
      'an object': { first: 'Rex' },
    })) {
      it(`may not be ${what}`, async () => {
        expect(expectError(await postNamed(name), 400, 'validation_failed')).to.match(/^name: must [^;]+$/)
      })
    }

    for (const escaped of ['\\ud800', '\\udc15', 'a\\ud83db', '\\udc15\\ud83d']) {
      it(`may not hold the lone surrogate ${escaped}`, async () => {
        expect(expectError(await post(`{"name":"${escaped}","categoryId":7}`), 400, 'validation_failed')).to.match(/^name: /)
      })
    }

    it('may be written with escapes', async () => {
      expect((await post('{"name":"\\u0052\\ud83d\\udc15\\/\\"","categoryId":7}')).json.name).to.equal(`R${DOG}/"`)
    })

    it('is trimmed, and its length is counted after that', async () => {
      expect((await postNamed(' \t\u3000Rex the dog \r\n')).json.name).to.equal('Rex the dog')
      expect((await postNamed(`   ${'x'.repeat(200)}   `)).json.name).to.equal('x'.repeat(200))
    })
  })
})
