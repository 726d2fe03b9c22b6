import { createHash } from 'node:crypto'
import { expect } from 'chai'
import type { ApiKeySecrets } from '../../src/core/ports/api-key-secrets.js'

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

export function describeApiKeySecrets(name: string, make: () => ApiKeySecrets): void {
  describe(`the API key secrets ${name}`, () => {
    const secrets = make()

    it('are pst_live_, 30 Base62 characters and 6 of their CRC32', () => {
      for (let count = 0; count < 200; count++) {
        const { secret } = secrets.generate()
        expect(secret).to.match(/^pst_live_[0-9A-Za-z]{36}$/)
        expect(secret.slice(-6)).to.equal(base62(slowCrc32(secret.slice(9, 39))))
      }
    })

    it('come with a key id of their own, which is public: key_ and 16 Base62 characters', () => {
      for (let count = 0; count < 200; count++) expect(secrets.generate().keyId).to.match(/^key_[0-9A-Za-z]{16}$/)
    })

    it('come with their SHA-256 in lower-case hexadecimal, which is also what they are looked up by', () => {
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

    it('are new every time, and so are their key ids', () => {
      const generated = Array.from({ length: 1000 }, () => secrets.generate())
      expect(new Set(generated.map(({ secret }) => secret)).size).to.equal(1000)
      expect(new Set(generated.map(({ keyId }) => keyId)).size).to.equal(1000)
    })

    it('are hashed the same each time', () => {
      const { secret, secretHash } = secrets.generate()
      for (let count = 0; count < 5; count++) expect(secrets.hash(secret)).to.equal(secretHash)
    })

    it('made elsewhere by the same rule are recognised', () => {
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
      ['has lost its last character', (secret: string) => secret.slice(0, -1)],
      ['has one character more at its end', (secret: string) => `${secret}0`],
      ['has one character more in its middle', (secret: string) => `${secret.slice(0, 20)}0${secret.slice(20)}`],
      ['has a space before it', (secret: string) => ` ${secret}`],
      ['has a line end behind it', (secret: string) => `${secret}\n`],
      ['stands in the second of two lines', (secret: string) => `x\n${secret}`],
      ['has a character outside Base62', (secret: string) => `${secret.slice(0, 20)}-${secret.slice(21)}`],
      ['has a digit of another script', (secret: string) => `${secret.slice(0, 20)}\u0665${secret.slice(21)}`],
      ['has another checksum', (secret: string) => secret.slice(0, -6) + base62(slowCrc32(secret.slice(9, 39)) ^ 1)],
      ['is longer than a header may be', () => `pst_live_${'0'.repeat(100_000)}`],
    ] satisfies [string, (secret: string) => string][]) {
      it(`have no hash when what was sent ${what}`, () => {
        expect(secrets.hash(spoil(secrets.generate().secret))).to.equal(undefined)
      })
    }
  })
}

/** CRC32 as its definition says, bit by bit. */
function slowCrc32(text: string): number {
  let rest = 0xffff_ffff
  for (const byte of Buffer.from(text)) {
    rest ^= byte
    for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ 0xedb8_8320 : rest >>> 1
  }
  return (rest ^ 0xffff_ffff) >>> 0
}

/** Six digits, the most significant first. */
function base62(value: number): string {
  const unsigned = value >>> 0
  return [5, 4, 3, 2, 1, 0].map((place) => DIGITS[Math.floor(unsigned / 62 ** place) % 62]).join('')
}
