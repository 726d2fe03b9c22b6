import { expect } from 'chai'
import { expectError } from '../support/responses.js'
import { useApi } from '../support/api.js'

const DOG = '\u{1f415}'

describe('POST /v1/pets', () => {
  const api = useApi()

  const postNamed = (name: unknown) => api.postPet({ name, categoryId: 7 })

  it('returns 201 with the new pet and its Location', async () => {
    const created = await api.postPet({ name: 'Rex', categoryId: 7, status: 'pending' })
    expect(created.status).to.equal(201)
    expect(created.headers).to.include({ 'content-type': 'application/json', location: '/v1/pets/11' })
    expect(created.text).to.equal('{"id":11,"name":"Rex","categoryId":7,"status":"pending"}')
    expect((await api.call('/v1/pets/11')).text).to.equal(created.text)
  })

  it('adds the pet to the list, with its status', async () => {
    const { id } = (await api.postPet({ name: 'Listed', categoryId: 7, status: 'sold' })).json
    const listIds = async (query: string) => (await api.call(`/v1/pets?limit=100${query}`)).json.map((pet: { id: number }) => pet.id)
    expect(await listIds('')).to.include(id)
    expect(await listIds('&status=sold')).to.include(id)
    expect(await listIds('&status=available')).to.not.include(id)
  })

  it('assigns ascending IDs and never the same one twice', async () => {
    const responses = await Promise.all(Array.from({ length: 20 }, () => postNamed('Rex')))
    const ids = responses.map(({ json }) => json.id as number)
    expect(new Set(ids)).to.have.property('size', 20)
    expect((await postNamed('Rex')).json.id).to.be.above(Math.max(...ids))
  })

  for (const status of [undefined, 'available', 'pending', 'sold']) {
    it(`creates ${status ?? 'an available'} pet if the status is ${status ?? 'missing'}`, async () =>
      expect((await api.postPet({ name: 'Rex', categoryId: 7, status })).json.status).to.equal(status ?? 'available'))
  }

  it('ignores unknown fields, including id, and the order of the fields', async () => {
    const unknown = { id: 4, tags: ['good'], owner: { name: 'Ann' }, constructor: 1, toString: null }
    const created = await api.postPet({ ...unknown, status: 'sold', categoryId: 1, name: 'Rex' })
    expect(created.status).to.equal(201)
    expect(created.text).to.match(/^\{"id":\d+,"name":"Rex","categoryId":1,"status":"sold"\}$/)
    expect(created.json.id).to.be.above(10)
  })

  const invalid: [string, unknown, string[]][] = [
    ['an empty object', {}, ['name', 'categoryId']],
    ['three invalid fields', { name: '', categoryId: '7', status: 'lost' }, ['name', 'categoryId', 'status']],
    ['three invalid fields in another order', { status: 1, categoryId: null, name: 5 }, ['name', 'categoryId', 'status']],
    ['an unknown status', { name: 'Rex', categoryId: 7, status: 'SOLD' }, ['status']],
    ['a status of null', { name: 'Rex', categoryId: 7, status: null }, ['status']],
    ['a missing name', { categoryId: 7 }, ['name']],
    ['a missing categoryId', { name: 'Rex' }, ['categoryId']],
    ...['[]', 'null', '7', 'true', '"Rex"', '[{"name":"Rex","categoryId":7}]'].map((body): [string, string, string[]] => [
      `the body ${body}`,
      body,
      ['body'],
    ]),
  ]
  for (const [what, body, fields] of invalid) {
    it(`returns 400 for ${what}, names every invalid field in order, and adds no pet`, async () => {
      const countPets = async () => (await api.call('/v1/pets?limit=100')).json.length as number
      const before = await countPets()
      const message = expectError(await api.postPet(body), 400, 'validation_failed')
      expect(message.split('; ').map((problem) => problem.split(': ')[0])).to.deep.equal(fields)
      expect(await countPets()).to.equal(before)
    })
  }

  it('lists the valid statuses in the message for an unknown one', async () => {
    const response = await api.postPet({ name: 'Rex', categoryId: 7, status: 'lost' })
    expect(expectError(response, 400, 'validation_failed')).to.match(/^status: .*available, pending, sold$/)
  })

  for (const query of ['x=1', 'status=sold', 'limit=5&limit=5']) {
    it(`returns 400 for the query ${query}, because it has no query parameters`, async () => {
      const body = { name: 'Rex', categoryId: 7 }
      expectError(await api.call(`/v1/pets?${query}`, { method: 'POST', body }), 400, 'invalid_parameter')
    })
  }

  // Which names are valid is tested in core/pet.test.ts.
  for (const [what, name] of Object.entries({
    '200 emoji, of two UTF-16 units each': DOG.repeat(200),
    'several emoji joined to one': '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}',
    'letters of many scripts': 'Ærøskøbing Žižka Ωμέγα 小狗 كلب',
    'combining marks': 'e\u0301',
    'quotes, backslashes and slashes': 'a"b\\c/d\'e',
    'markup and operators': '<script>{{$where}} ${x}; DROP TABLE',
    'a Unicode line separator': 'a\u2028b',
    'the word null': 'null',
    'the replacement character': '\ufffd',
  })) {
    it(`returns a name with ${what} unchanged`, async () => {
      const created = await postNamed(name)
      expect(created.json).to.include({ name })
      expect((await api.call(created.headers.location ?? '')).json.name).to.equal(name)
    })
  }

  for (const [what, name] of Object.entries({
    'is empty': '',
    'is white space': ' \t\r\n\u00a0\u3000',
    'has 201 emoji': DOG.repeat(201),
    'has 60,000 characters': 'x'.repeat(60_000),
    'contains a control character': 'a\u0000b',
    'contains a line break': 'a\nb',
    'is a number': 7,
    'is null': null,
    'is true': true,
    'is an array': ['Rex'],
    'is an object': { first: 'Rex' },
  })) {
    it(`returns 400 if the name ${what}`, async () => {
      expect(expectError(await postNamed(name), 400, 'validation_failed')).to.match(/^name: must [^;]+$/)
    })
  }

  for (const escaped of ['\\ud800', '\\udc15', 'a\\ud83db', '\\udc15\\ud83d']) {
    it(`returns 400 if the name contains the lone surrogate ${escaped}`, async () => {
      expect(expectError(await api.postPet(`{"name":"${escaped}","categoryId":7}`), 400, 'validation_failed')).to.match(/^name: /)
    })
  }

  it('trims the name before it measures the length', async () => {
    expect((await postNamed(' \t\u3000Rex the dog \r\n')).json.name).to.equal('Rex the dog')
    expect((await postNamed(`   ${'x'.repeat(200)}   `)).json.name).to.equal('x'.repeat(200))
  })
})
