import { expect } from 'chai'
import { expectError } from '../support/responses.js'
import type { TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import { issueAmpleKey } from '../support/api.js'

const REX = '{"name":"Rex","categoryId":7}'

describe('JSON that a client sends', () => {
  let api: TestApi
  let key: string

  before(async () => {
    api = await startApi()
    key = await issueAmpleKey(api)
  })
  after(() => api.stop())

  const post = (body: string | Uint8Array) =>
    api.send('/v1/pets', { method: 'POST', key, headers: { 'content-type': 'application/json' }, body })
  /** Bytes put in the place of the question mark. */
  const withBytes = (...bytes: number[]) =>
    Buffer.concat([Buffer.from('{"categoryId":7,"name":"a'), Buffer.from(bytes), Buffer.from('b"}')])

  it('is read as UTF-8', async () => {
    expect((await post('{"name":"Žižka 狗 \u{1f415}","categoryId":7}')).json.name).to.equal('Žižka 狗 \u{1f415}')
  })

  it('may have white space around and within', async () =>
    expect((await post('\r\n\t { "name" : "Rex" ,\n"categoryId":\t7 } \n')).status).to.equal(201))

  it('may begin with one byte order mark, which is passed over', async () => {
    expect((await post(`\ufeff${REX}`)).status).to.equal(201)
    expectError(await post(`\ufeff\ufeff${REX}`), 400, 'invalid_json')
  })

  for (const [what, body] of Object.entries({
    'a stray continuation byte': withBytes(0x80),
    'a broken sequence': withBytes(0xc3, 0x28),
    'bytes that UTF-8 never has': withBytes(0xff, 0xfe),
    'an overlong slash': withBytes(0xc0, 0xaf),
    'an encoded surrogate': withBytes(0xed, 0xa0, 0x80),
    'a code point beyond Unicode': withBytes(0xf4, 0x90, 0x80, 0x80),
    'a sequence cut short by the end': Buffer.concat([Buffer.from(REX), Buffer.from([0xc3])]),
    'Latin-1': Buffer.from('{"name":"Žofín Müller","categoryId":7}', 'latin1'),
    'UTF-16': Buffer.from(REX, 'utf16le'),
  })) {
    it(`with ${what} is refused, not mended`, async () => void expectError(await post(body), 400, 'invalid_json'))
  }

  it('that is cut short anywhere is refused', async () => {
    const body = '{"name":"R\\u0065x","categoryId":-7.0e1,"status":"sold","tags":[true,null,{}]}'
    expect((await post(body)).status).to.equal(201)
    for (let length = 1; length < body.length; length += 1) expectError(await post(body.slice(0, length)), 400, 'invalid_json')
  })

  for (const body of [
    `${REX}x`,
    `${REX}${REX}`,
    `${REX},`,
    '{"name":"Rex","categoryId":7,}',
    '{"name":"Rex",,"categoryId":7}',
    "{'name':'Rex','categoryId':7}",
    '{name:"Rex","categoryId":7}',
    '{"name":"Rex","categoryId":7} // pet',
    '/**/{"name":"Rex","categoryId":7}',
    '{"name":"a\nb","categoryId":7}',
    '{"name":"\\x41","categoryId":7}',
    '{"name":"\\u00g0","categoryId":7}',
    '{"name":"Rex","categoryId":7,"x":[1,]}',
    '{"name":"Rex","categoryId":7,"x":TRUE}',
    '{"name":"Rex","categoryId":7,"x":undefined}',
    'name=Rex&categoryId=7',
    '\0',
  ]) {
    it(`${JSON.stringify(body)} is refused`, async () => void expectError(await post(body), 400, 'invalid_json'))
  }

  it('that gives one field two values is refused, however the field is spelt', async () => {
    expectError(await post('{"name":"Rex","categoryId":7,"name":"Max"}'), 400, 'invalid_json')
    expectError(await post('{"name":"Rex","categoryId":7,"n\\u0061me":"Max"}'), 400, 'invalid_json')
    expectError(await post('{"name":"Rex","categoryId":7,"categoryId":9007199254740993}'), 400, 'invalid_json')
    expectError(await post('{"name":"Rex","categoryId":7,"x":{"__proto__":1,"__proto__":2}}'), 400, 'invalid_json')
  })

  describe('nested deeply', () => {
    /** A pet with a field that nobody asked for, `levels` deep together with the pet itself. */
    const nested = (levels: number, open = '[', close = ']') =>
      `{"name":"Rex","categoryId":7,"x":${open.repeat(levels - 1)}${open === '[' ? '' : '1'}${close.repeat(levels - 1)}}`

    it('is read down to 32 levels, and refused from 33 on', async () => {
      for (const [open, close] of [
        ['[', ']'],
        ['{"a":', '}'],
      ] as const) {
        expect((await post(nested(32, open, close))).status).to.equal(201)
        expectError(await post(nested(33, open, close)), 400, 'invalid_json')
      }
    })

    it('30,000 levels are refused like 33', async () => {
      expectError(await post(nested(30_000)), 400, 'invalid_json')
      expectError(await post('['.repeat(65_000)), 400, 'invalid_json')
      expectError(await post('{"a":'.repeat(12_000)), 400, 'invalid_json')
    })

    it('is not one whose brackets stand in strings', async () => {
      const brackets = '[{'.repeat(500)
      for (const text of [brackets, `\\"${brackets}`, `\\\\\\"${brackets}\\\\`, `\\u0022${brackets}`]) {
        expect((await post(`{"name":"Rex","categoryId":7,"x":"${text}","${text}":1}`)).status).to.equal(201)
      }
    })

    it('is one whose brackets only seem to stand in a string', async () => {
      expectError(await post(`{"name":"Rex","categoryId":7,"x":["\\\\",${'['.repeat(40)}${']'.repeat(40)}]}`), 400, 'invalid_json')
    })

    it('is not one that is wide', async () => {
      const wide = Array.from({ length: 5000 }, () => '{"a":[]}').join()
      expect((await post(`{"name":"Rex","categoryId":7,"x":[${wide}]}`)).status).to.equal(201)
    })
  })

  for (const [what, body] of Object.entries({
    'escaped quotes': `{"name":"${'\\"'.repeat(32_000)}","categoryId":7}`,
    'escaped quotes and no end': `{"name":"${'\\"'.repeat(32_000)}`,
    backslashes: `{"name":"${'\\\\'.repeat(32_000)}","categoryId":7}`,
    quotes: '"'.repeat(65_000),
    'brackets that close nothing': ']'.repeat(65_000),
    fields: `{${Array.from({ length: 6000 }, (_, index) => `"${index}":0`).join()}}`,
    'one field again and again': `{${Array.from({ length: 3000 }, () => '"a":{"b":1,"c":2}').join()}}`,
    'white space': `${' '.repeat(65_000)}{`,
  })) {
    it(`of 64 KiB of ${what} is answered before a client would notice`, async () =>
      expect((await post(body)).status).to.equal(400)).timeout(2000)
  }

  it('is never told back at length: the message stays within what the document promises', async () => {
    const long = 'k'.repeat(30_000)
    for (const body of [`{"${long}":1,"${long}":2}`, `{"a":${'1'.repeat(60_000)}.}`, `{"a":"\\${long}"}`]) {
      expect(expectError(await post(body), 400, 'invalid_json')).to.have.length.at.most(10_000)
    }
  })

  describe('with __proto__ in it', () => {
    it('is harmless, and a field like any other that nobody asked for', async () => {
      const created = await post(
        '{"__proto__":{"status":"sold","polluted":true},"constructor":{"prototype":{"polluted":true}},"name":"Rex","categoryId":7}',
      )
      expect(created.status).to.equal(201)
      expect(created.json).to.include({ status: 'available' }).and.to.have.all.keys('id', 'name', 'categoryId', 'status')
      expect({}).to.not.have.property('polluted')
    })

    it('does not lend its fields to the pet', async () => {
      const message = expectError(await post('{"__proto__":{"name":"Rex","categoryId":7}}'), 400, 'validation_failed')
      expect(message).to.equal('name: is required; categoryId: is required')
    })

    it('may also be null, a number or a list', async () => {
      for (const value of ['null', '7', '[1]'])
        expect((await post(`{"__proto__":${value},"name":"Rex","categoryId":7}`)).status).to.equal(201)
    })
  })
})
