import { expect } from 'chai'
import { DEFAULT_PET_STATUS, isPetName, PET_NAME_MAX_LENGTH, PET_STATUSES } from '../../src/core/pet.js'

describe('a pet name', () => {
  for (const [what, name] of [
    ['one character', 'R'],
    ['200 characters', 'x'.repeat(200)],
    ['200 characters of four bytes and two UTF-16 units each', '\u{1f436}'.repeat(200)],
    ['spaces between words', 'Rex the  Third'],
    ['letters of any script, with combining marks', 'Ре\u0301кс \u05d0 犬'],
    ['an emoji of several code points', '\u{1f469}\u{1f3fd}\u200d\u{1f680}'],
    ['punctuation and markup, which readers must escape', '<b>O\'Neil & "Söhne"</b> \\ $'],
    ['a no-break space', 'a\u00a0b'],
    ['the last code point', '\u{10ffff}'],
  ] satisfies [string, string][]) {
    it(`is valid: ${what}`, () => expect(isPetName(name)).to.equal(true))
  }

  for (const [what, name] of [
    ['an empty name', ''],
    ['201 characters', 'x'.repeat(201)],
    ['201 characters of two UTF-16 units each', '\u{1f436}'.repeat(201)],
    ['a NUL', 'a\u0000b'],
    ['a tab', 'a\tb'],
    ['a line break', 'a\nb'],
    ['a line break at the end', 'Rex\n'],
    ['an escape', 'a\u001bb'],
    ['a delete', 'a\u007fb'],
    ['a C1 control character', 'a\u0085b'],
    ['the first half of a surrogate pair', 'a\ud83d'],
    ['the second half of a surrogate pair', '\udc36b'],
    ['the halves of a surrogate pair in the wrong order', '\udc36\ud83d'],
  ] satisfies [string, string][]) {
    it(`is not valid: ${what}`, () => expect(isPetName(name)).to.equal(false))
  }

  it('must not contain any control character', () => {
    const controls = [...Array.from({ length: 0x20 }, (_, code) => code), ...Array.from({ length: 0x21 }, (_, index) => 0x7f + index)]
    expect(controls.filter((code) => isPetName(`a${String.fromCharCode(code)}b`))).to.deep.equal([])
  })

  it('has at most 200 code points', () => {
    expect(PET_NAME_MAX_LENGTH).to.equal(200)
  })
})

describe('a pet status', () => {
  it('is available, pending or sold; the default is available', () => {
    expect(PET_STATUSES).to.deep.equal(['available', 'pending', 'sold'])
    expect(DEFAULT_PET_STATUS).to.equal('available')
  })
})
