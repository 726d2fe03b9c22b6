import { expect } from 'chai'
import { expectError } from '../support/responses.js'
import { useApi } from '../support/api.js'

const REX = '{"name":"Rex","categoryId":7}'
const PET_FIELDS = '"name":"Rex","categoryId":7'
const BROKEN_UTF8 = Object.entries({
  'a lone continuation byte': [0x80],
  'an incomplete sequence': [0xc3, 0x28],
  'bytes that UTF-8 never contains': [0xff, 0xfe],
  'an overlong slash': [0xc0, 0xaf],
  'an encoded surrogate': [0xed, 0xa0, 0x80],
  'a code point beyond Unicode': [0xf4, 0x90, 0x80, 0x80],
})

describe('a JSON body', () => {
  const api = useApi()

  const getStatus = async (body: unknown) => (await api.postPet(body)).status
  const expectInvalid = async (body: string | Uint8Array) => expectError(await api.postPet(body), 400, 'invalid_json')

  it('is UTF-8, with or without escapes', async () => {
    expect((await api.postPet('{"name":"Žižka 狗 \u{1f415}","categoryId":7}')).json.name).to.equal('Žižka 狗 \u{1f415}')
    expect((await api.postPet('{"name":"\\u0052\\ud83d\\udc15\\/\\"","categoryId":7}')).json.name).to.equal('R\u{1f415}/"')
  })

  it('may contain white space', async () => expect(await getStatus('\r\n\t { "name" : "Rex" ,\n"categoryId":\t7 } \n')).to.equal(201))

  it('may start with one byte order mark', async () => {
    expect(await getStatus(`\ufeff${REX}`)).to.equal(201)
    await expectInvalid(`\ufeff\ufeff${REX}`)
  })

  for (const [what, body] of [
    ...BROKEN_UTF8.map(([name, bytes]) => [
      name,
      Buffer.from([...Buffer.from('{"categoryId":7,"name":"a'), ...bytes, ...Buffer.from('b"}')]),
    ]),
    ['an incomplete sequence at its end', Buffer.from([...Buffer.from(REX), 0xc3])],
    ['Latin-1', Buffer.from('{"name":"Žofín Müller","categoryId":7}', 'latin1')],
    ['UTF-16', Buffer.from(REX, 'utf16le')],
  ] as [string, Buffer][]) {
    it(`with ${what} returns 400`, async () => void (await expectInvalid(body)))
  }

  it('returns 400 if it is truncated anywhere', async () => {
    const body = '{"name":"R\\u0065x","categoryId":-7.0e1,"status":"sold","tags":[true,null,{}]}'
    expect(await getStatus(body)).to.equal(201)
    for (let length = 1; length < body.length; length += 1) await expectInvalid(body.slice(0, length))
  })

  for (const body of [
    `${REX}x`,
    `${REX}${REX}`,
    `${REX},`,
    `{${PET_FIELDS},}`,
    '{"name":"Rex",,"categoryId":7}',
    "{'name':'Rex','categoryId':7}",
    '{name:"Rex","categoryId":7}',
    `${REX} // pet`,
    `/**/${REX}`,
    '{"name":"a\nb","categoryId":7}',
    '{"name":"\\x41","categoryId":7}',
    '{"name":"\\u00g0","categoryId":7}',
    `{${PET_FIELDS},"x":[1,]}`,
    `{${PET_FIELDS},"x":TRUE}`,
    `{${PET_FIELDS},"x":undefined}`,
    ...'07 +7 .5 7. 1e 0x7 1_000 NaN Infinity - 7n'.split(' ').map((literal) => `{"name":"Rex","categoryId":${literal}}`),
    'name=Rex&categoryId=7',
    '\0',
  ]) {
    it(`of ${JSON.stringify(body)} returns 400`, async () => void (await expectInvalid(body)))
  }

  for (const duplicate of ['"name":"Max"', '"n\\u0061me":"Max"', '"categoryId":9007199254740993', '"x":{"__proto__":1,"__proto__":2}']) {
    it(`returns 400 if a field occurs twice with different values: ${duplicate}`, async () =>
      void (await expectInvalid(`{${PET_FIELDS},${duplicate}}`)))
  }

  describe('with nested values', () => {
    /** A pet with an unknown field, `levels` deep including the pet. */
    const nest = (levels: number, open = '[', close = ']') =>
      `{${PET_FIELDS},"x":${open.repeat(levels - 1)}${open === '[' ? '' : '1'}${close.repeat(levels - 1)}}`

    it('may have 32 levels; 33 return 400', async () => {
      for (const [open, close] of [
        ['[', ']'],
        ['{"a":', '}'],
      ] as const) {
        expect(await getStatus(nest(32, open, close))).to.equal(201)
        await expectInvalid(nest(33, open, close))
      }
    })

    it('returns 400 for 30,000 levels, too', async () => {
      for (const body of [nest(30_000), '['.repeat(65_000), '{"a":'.repeat(12_000)]) await expectInvalid(body)
    })

    it('does not count brackets in strings as levels', async () => {
      const brackets = '[{'.repeat(500)
      for (const text of [brackets, `\\"${brackets}`, `\\\\\\"${brackets}\\\\`, `\\u0022${brackets}`]) {
        expect(await getStatus(`{${PET_FIELDS},"x":"${text}","${text}":1}`)).to.equal(201)
      }
    })

    it('counts brackets after a string that ends with an escaped backslash', async () =>
      void (await expectInvalid(`{${PET_FIELDS},"x":["\\\\",${'['.repeat(40)}${']'.repeat(40)}]}`)))

    it('may have 5,000 values side by side', async () => {
      const wide = Array.from({ length: 5000 }, () => '{"a":[]}').join()
      expect(await getStatus(`{${PET_FIELDS},"x":[${wide}]}`)).to.equal(201)
    })
  })

  for (const [what, body] of Object.entries({
    'escaped quotes': `{"name":"${'\\"'.repeat(32_000)}","categoryId":7}`,
    'escaped quotes without an end': `{"name":"${'\\"'.repeat(32_000)}`,
    backslashes: `{"name":"${'\\\\'.repeat(32_000)}","categoryId":7}`,
    quotes: '"'.repeat(65_000),
    'closing brackets': ']'.repeat(65_000),
    fields: `{${Array.from({ length: 6000 }, (_, index) => `"${index}":0`).join()}}`,
    'the same field': `{${Array.from({ length: 3000 }, () => '"a":{"b":1,"c":2}').join()}}`,
    'white space': `${' '.repeat(65_000)}{`,
  })) {
    it(`with 64 KiB of ${what} returns 400 within two seconds`, async () => expect(await getStatus(body)).to.equal(400)).timeout(2000)
  }

  it('is not repeated in full in the message, which has at most the documented 10,000 characters', async () => {
    const long = 'k'.repeat(30_000)
    for (const body of [`{"${long}":1,"${long}":2}`, `{"a":${'1'.repeat(60_000)}.}`, `{"a":"\\${long}"}`]) {
      expect(await expectInvalid(body)).to.have.length.at.most(10_000)
    }
  })

  it('may contain __proto__, which is an unknown field and changes nothing', async () => {
    const created = await api.postPet(
      `{"__proto__":{"status":"sold","polluted":true},"constructor":{"prototype":{"polluted":true}},${PET_FIELDS}}`,
    )
    expect(created.status).to.equal(201)
    expect(created.json).to.include({ status: 'available' }).and.to.have.all.keys('id', 'name', 'categoryId', 'status')
    expect({}).to.not.have.property('polluted')
    expectError(await api.postPet(`{"__proto__":{${PET_FIELDS}}}`), 400, 'validation_failed')
    for (const value of ['null', '7', '[1]']) expect(await getStatus(`{"__proto__":${value},${PET_FIELDS}}`)).to.equal(201)
  })
})
