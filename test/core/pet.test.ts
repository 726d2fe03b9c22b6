import { expect } from 'chai'
import { DEFAULT_PET_STATUS, isPetName, PET_NAME_MAX_LENGTH, PET_STATUSES } from '../../src/core/pet.js'

describe('a pet name', () => {
  for (const [what, name] of Object.entries({
    'one character': 'R',
    '200 characters': 'x'.repeat(200),
    '200 code points, of two UTF-16 units each': '\u{1f436}'.repeat(200),
    'spaces between words': 'Rex the  Third',
    'letters of any script, with combining marks': 'Ре\u0301кс \u05d0 犬',
    'an emoji of several code points': '\u{1f469}\u{1f3fd}\u200d\u{1f680}',
    'punctuation and markup': '<b>O\'Neil & "Söhne"</b> \\ $',
    'a no-break space': 'a\u00a0b',
    'the last code point': '\u{10ffff}',
  })) {
    it(`may contain ${what}`, () => expect(isPetName(name)).to.equal(true))
  }

  for (const [what, name] of Object.entries({
    'be empty': '',
    'contain 201 characters': 'x'.repeat(201),
    'contain 201 code points, of two UTF-16 units each': '\u{1f436}'.repeat(201),
    'end with a line break': 'Rex\n',
    'contain a high surrogate alone': 'a\ud83d',
    'contain a low surrogate alone': '\udc36b',
    'contain surrogates in the wrong order': '\udc36\ud83d',
  })) {
    it(`must not ${what}`, () => expect(isPetName(name)).to.equal(false))
  }

  it('must not contain a control character', () => {
    const controls = [...Array.from({ length: 0x20 }, (_, code) => code), ...Array.from({ length: 0x21 }, (_, index) => 0x7f + index)]
    expect(controls.filter((code) => isPetName(`a${String.fromCharCode(code)}b`))).to.deep.equal([])
  })

  it('has at most 200 code points, as the documentation says', () => expect(PET_NAME_MAX_LENGTH).to.equal(200))
})

describe('a pet status', () => {
  it('is available, pending or sold, and available by default', () => {
    expect(PET_STATUSES).to.deep.equal(['available', 'pending', 'sold'])
    expect(DEFAULT_PET_STATUS).to.equal('available')
  })
})
