import { createHash } from 'node:crypto'
import { expect } from 'chai'
import type { ApiKeySecrets } from '../../src/core/ports/api-key-secrets.js'

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

export function describeApiKeySecrets(name: string, make: () => ApiKeySecrets): void {
  describe(`the API key secrets ${name}`, () => {
    const secrets = make()

    it('are pst_live_, 30 Base62 characters and their CRC32 as 6 Base62 characters', () => {
      for (let count = 0; count < 200; count++) {
        const { secret } = secrets.generate()
        expect(secret).to.match(/^pst_live_[0-9A-Za-z]{36}$/)
        expect(secret.slice(-6)).to.equal(base62(slowCrc32(secret.slice(9, 39))))
      }
    })

    it('come with a public key ID: key_ and 16 Base62 characters', () => {
      for (let count = 0; count < 200; count++) expect(secrets.generate().keyId).to.match(/^key_[0-9A-Za-z]{16}$/)
    })

    it('come with their SHA-256 hash in lower-case hexadecimal, by which they are looked up', () => {
      const { secret, secretHash } = secrets.generate()
      expect(secretHash).to.equal(createHash('sha256').update(secret).digest('hex'))
      expect(secrets.hash(secret)).to.equal(secretHash)
    })

    it('come with a hint of the prefix and the last four characters', () => {
      const { secret, hint } = secrets.generate()
      expect(hint).to.match(/^pst_live_/)
      expect(hint.slice(-4)).to.equal(secret.slice(-4))
      expect(hint).to.have.lengthOf.below(15)
    })

    it('generated elsewhere in the same format are accepted', () => {
      for (const random of ['0'.repeat(30), 'z'.repeat(30), 'abcdefghijklmnopqrstuvwxyzABCD', '012345678901234567890123456789']) {
        const secret = `pst_live_${random}${base62(slowCrc32(random))}`
        expect(secrets.hash(secret)).to.equal(createHash('sha256').update(secret).digest('hex'))
      }
    })

    for (const [what, spoil] of [
      ['is empty', () => ''],
      ['has no prefix', (secret: string) => secret.slice(9)],
      ['has another prefix', (secret: string) => secret.replace('pst_live_', 'pst_test_')],
      ['has its prefix in another letter case', (secret: string) => secret.replace('pst_live_', 'PST_live_')],
      ['is the prefix alone', () => 'pst_live_'],
      ['lacks its last character', (secret: string) => secret.slice(0, -1)],
      ['has an extra character at the end', (secret: string) => `${secret}0`],
      ['has an extra character in the middle', (secret: string) => `${secret.slice(0, 20)}0${secret.slice(20)}`],
      ['has a space before it', (secret: string) => ` ${secret}`],
      ['ends with a line break', (secret: string) => `${secret}\n`],
      ['is on the second line', (secret: string) => `x\n${secret}`],
      ['has a character outside Base62', (secret: string) => `${secret.slice(0, 20)}-${secret.slice(21)}`],
      ['has a digit of another script', (secret: string) => `${secret.slice(0, 20)}\u0665${secret.slice(21)}`],
      ['has another checksum', (secret: string) => secret.slice(0, -6) + base62(slowCrc32(secret.slice(9, 39)) ^ 1)],
      ['is longer than any header', () => `pst_live_${'0'.repeat(100_000)}`],
    ] satisfies [string, (secret: string) => string][]) {
      it(`have no hash if the text ${what}`, () => {
        expect(secrets.hash(spoil(secrets.generate().secret))).to.equal(undefined)
      })
    }
  })
}

/** CRC32 by its definition, bit by bit. */
function slowCrc32(text: string): number {
  let rest = 0xffff_ffff
  for (const byte of Buffer.from(text)) {
    rest ^= byte
    for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ 0xedb8_8320 : rest >>> 1
  }
  return (rest ^ 0xffff_ffff) >>> 0
}

/** Six digits, most significant first. */
function base62(value: number): string {
  const unsigned = value >>> 0
  return [5, 4, 3, 2, 1, 0].map((digit) => DIGITS[Math.floor(unsigned / 62 ** digit) % 62]).join('')
}
