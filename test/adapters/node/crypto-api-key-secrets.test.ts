import { expect } from 'chai'
import { CryptoApiKeySecrets } from '../../../src/adapters/node/crypto-api-key-secrets.js'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const PREFIX_LENGTH = 'pst_live_'.length
const CHECKSUM_BEGIN = PREFIX_LENGTH + 30

describe('API key secrets of node:crypto', () => {
  const secrets = new CryptoApiKeySecrets()

  it('have no hash if any single character after the prefix is mistyped', () => {
    const { secret } = secrets.generate()
    let checked = 0
    for (let position = PREFIX_LENGTH; position < secret.length; position++) {
      for (const digit of BASE62.replace(secret.charAt(position), '')) {
        const mistyped = secret.slice(0, position) + digit + secret.slice(position + 1)
        if (secrets.hash(mistyped) !== undefined) throw new Error(`${digit} at ${position} passes in ${secret}`)
        checked++
      }
    }
    expect(checked).to.equal(36 * 61)
  })

  it('have no hash if any two different random characters are swapped', () => {
    let checked = 0
    for (let round = 0; round < 20; round++) {
      const { secret } = secrets.generate()
      for (let left = PREFIX_LENGTH; left < CHECKSUM_BEGIN; left++) {
        for (let right = left + 1; right < CHECKSUM_BEGIN; right++) {
          const exchanged = exchange(secret, left, right)
          if (exchanged === secret) continue
          if (secrets.hash(exchanged) !== undefined) throw new Error(`${left} and ${right} exchanged pass in ${secret}`)
          checked++
        }
      }
    }
    expect(checked).to.be.above(20 * 400)
  })

  it('are unique among 10,000, as are their key IDs, hashes and random parts', () => {
    const generated = Array.from({ length: 10_000 }, () => secrets.generate())
    for (const part of ['secret', 'keyId', 'secretHash'] as const) {
      expect(new Set(generated.map((one) => one[part])).size, part).to.equal(10_000)
    }
    expect(new Set(generated.map(({ secret }) => getRandomPart(secret))).size).to.equal(10_000)
  })

  it('use every Base62 character about equally often at every random position', () => {
    const randomParts = Array.from({ length: 10_000 }, () => {
      const { secret, keyId } = secrets.generate()
      return getRandomPart(secret) + keyId.slice('key_'.length)
    })
    for (let position = 0; position < 46; position++) {
      const counts = new Map<string, number>()
      for (const part of randomParts) counts.set(part.charAt(position), (counts.get(part.charAt(position)) ?? 0) + 1)
      expect(counts.size, `position ${position}`).to.equal(62)
      // 161 on average; chance alone leaves this range about once in a million runs.
      expect(Math.min(...counts.values()), `position ${position}`).to.be.above(80)
      expect(Math.max(...counts.values()), `position ${position}`).to.be.below(250)
    }
  })

  it('reveal nothing of their random part in the key ID and the hash, and only the last four characters in the hint', () => {
    for (let round = 0; round < 200; round++) {
      const { secret, keyId, hint, secretHash } = secrets.generate()
      const random = getRandomPart(secret)
      expect(hint).to.equal(`pst_live_…${secret.slice(-4)}`)
      // Eight characters are in common by chance once in hundreds of millions of runs.
      for (let begin = 0; begin + 8 <= random.length; begin++) {
        const piece = random.slice(begin, begin + 8)
        for (const shown of [keyId, hint, secretHash]) expect(shown).not.to.include(piece)
      }
    }
  })
})

function getRandomPart(secret: string): string {
  return secret.slice(PREFIX_LENGTH, CHECKSUM_BEGIN)
}

function exchange(text: string, left: number, right: number): string {
  return text.slice(0, left) + text.charAt(right) + text.slice(left + 1, right) + text.charAt(left) + text.slice(right + 1)
}
