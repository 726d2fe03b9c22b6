import { expect } from 'chai'
import fc from 'fast-check'
import { buildOpenApiDocument } from '../../../src/adapters/http/openapi/openapi.js'
import { newPet } from '../../../src/adapters/http/schemas/pet-schemas.js'
import { readConfig } from '../../../src/config.js'
import { PET_NAME_MAX_LENGTH } from '../../../src/core/pet.js'

interface NameSchema {
  readonly pattern: string
  readonly maxLength: number
}

const document = buildOpenApiDocument({ serverUrl: 'https://pets.example', plans: readConfig({}).plans, version: '0.0.0' })
const findName = (schema: string) =>
  (document.components?.schemas?.[schema] as { properties: { name: NameSchema } } | undefined)?.properties.name ?? expect.fail()
const { pattern } = findName('NewPet')

const CONTROLS = [...Array.from({ length: 0x20 }, (_, code) => code), ...Array.from({ length: 0x21 }, (_, index) => 0x7f + index)].map(
  (code) => String.fromCharCode(code),
)
/** All characters that String.prototype.trim removes. */
const TRIMMED = [
  ...'\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff',
]

const isAccepted = (name: string) => newPet.safeParse({ name, categoryId: 7n }).success
const matches = (name: string, flags = 'u') => new RegExp(pattern, flags).test(name)

const character = fc.oneof(
  fc.constantFrom(...TRIMMED),
  fc.constantFrom(...CONTROLS),
  fc.constantFrom('R', '犬', '\u{1f436}', '\u0301', '\u200b', '\u180e', '\u00ad', '\\', '"', '$'),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
)
const name = fc.array(character, { maxLength: 12 }).map((characters) => characters.join(''))

describe('the pattern of a pet name in the OpenAPI document', () => {
  it('matches an untrimmed name if and only if the service accepts it', () =>
    fc.assert(
      fc.property(name, (sent) => {
        expect(matches(sent)).to.equal(isAccepted(sent))
        // Some validators compile patterns without Unicode mode.
        expect(matches(sent, '')).to.equal(isAccepted(sent))
      }),
      { numRuns: 5_000 },
    ))

  it('matches every name that the service returns', () =>
    fc.assert(
      fc.property(name.filter(isAccepted), (sent) => {
        expect(findName('Pet')).to.include({ pattern, maxLength: PET_NAME_MAX_LENGTH })
        expect(matches(newPet.parse({ name: sent, categoryId: 7n }).name)).to.equal(true)
      }),
      { numRuns: 1_000 },
    ))

  it('matches no control character inside a name', () => {
    expect(CONTROLS.filter((control) => matches(`R${control}x`))).to.deep.equal([])
  })

  it('matches the characters that trimming removes around a name, and no other control characters', () => {
    for (const white of TRIMMED) expect([matches(`${white}Rex`), matches(`Rex${white}`), matches(white)]).to.deep.equal([true, true, false])
    const others = CONTROLS.filter((control) => !TRIMMED.includes(control))
    expect(others.filter((control) => matches(`${control}Rex`) || matches(`Rex${control}`))).to.deep.equal([])
  })

  it('uses only syntax that ECMA-262, Java, Python, RE2 and .NET all support', () => {
    expect(pattern).to.not.match(/\(\?|\\[pPuU]|\\x\{|\\[1-9]|[^\x20-\x7e]/)
  })

  it('fails quickly on long texts that almost match', () => {
    for (const text of [`R${' '.repeat(60_000)}\0`, `${' '.repeat(60_000)}\0`, `R\t${' '.repeat(60_000)}\0`])
      expect(matches(text)).to.equal(false)
  }).timeout(1_000)

  it('differs from the service only in the length before trimming and in lone surrogates', () => {
    const padded = `${' '.repeat(10)}${'x'.repeat(PET_NAME_MAX_LENGTH)}`
    expect([isAccepted(padded), matches(padded), padded.length > findName('NewPet').maxLength]).to.deep.equal([true, true, true])
    expect([isAccepted('R\ud83d'), matches('R\ud83d')]).to.deep.equal([false, true])
  })
})
