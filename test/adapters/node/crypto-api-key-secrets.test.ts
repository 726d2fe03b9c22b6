import { expect } from 'chai'
import { CryptoApiKeySecrets } from '../../../src/adapters/node/crypto-api-key-secrets.js'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const PREFIX_LENGTH = 'pst_live_'.length
const CHECKSUM_BEGIN = PREFIX_LENGTH + 30

describe('API key secrets of node:crypto', () => {
  const secrets = new CryptoApiKeySecrets()

  it('have no hash when any one character behind the prefix is mistyped, whatever it becomes', () => {
    const { secret } = secrets.generate()
    let tried = 0
    for (let place = PREFIX_LENGTH; place < secret.length; place++) {
      for (const digit of BASE62.replace(secret.charAt(place), '')) {
        const mistyped = secret.slice(0, place) + digit + secret.slice(place + 1)
        if (secrets.hash(mistyped) !== undefined) throw new Error(`${digit} at ${place} passes in ${secret}`)
        tried++
      }
    }
    expect(tried).to.equal(36 * 61)
  })

  it('have no hash when any two different characters behind the prefix are exchanged', () => {
    let tried = 0
    for (let round = 0; round < 20; round++) {
      const { secret } = secrets.generate()
      for (let left = PREFIX_LENGTH; left < CHECKSUM_BEGIN; left++) {
        for (let right = left + 1; right < CHECKSUM_BEGIN; right++) {
          const exchanged = exchange(secret, left, right)
          if (exchanged === secret) continue
          if (secrets.hash(exchanged) !== undefined) throw new Error(`${left} and ${right} exchanged pass in ${secret}`)
          tried++
        }
      }
    }
    expect(tried).to.be.above(20 * 400)
  })

  it('differ in 10,000 of 10,000, as do their key ids, hashes and random parts', () => {
    const generated = Array.from({ length: 10_000 }, () => secrets.generate())
    for (const part of ['secret', 'keyId', 'secretHash'] as const) {
      expect(new Set(generated.map((one) => one[part])).size, part).to.equal(10_000)
    }
    expect(new Set(generated.map(({ secret }) => randomPartOf(secret))).size).to.equal(10_000)
  })

  it('use every Base62 character about equally often at every random place', () => {
    const randomParts = Array.from({ length: 10_000 }, () => {
      const { secret, keyId } = secrets.generate()
      return randomPartOf(secret) + keyId.slice('key_'.length)
    })
    for (let place = 0; place < 46; place++) {
      const counts = new Map<string, number>()
      for (const part of randomParts) counts.set(part.charAt(place), (counts.get(part.charAt(place)) ?? 0) + 1)
      expect(counts.size, `place ${place}`).to.equal(62)
      // 161 on average; chance alone leaves this range about once in a million runs.
      expect(Math.min(...counts.values()), `place ${place}`).to.be.above(80)
      expect(Math.max(...counts.values()), `place ${place}`).to.be.below(250)
    }
  })

  it('show nothing of their random part in the key id, the hint or the hash', () => {
    for (let round = 0; round < 200; round++) {
      const { secret, keyId, hint, secretHash } = secrets.generate()
      const random = randomPartOf(secret)
      expect(hint).to.equal(`pst_live_…${secret.slice(-4)}`)
      // Eight characters are in common by chance once in hundreds of millions of runs.
      for (let begin = 0; begin + 8 <= random.length; begin++) {
        const piece = random.slice(begin, begin + 8)
        for (const shown of [keyId, hint, secretHash]) expect(shown).not.to.include(piece)
      }
    }
  })
})

function randomPartOf(secret: string): string {
  return secret.slice(PREFIX_LENGTH, CHECKSUM_BEGIN)
}

function exchange(text: string, left: number, right: number): string {
  return text.slice(0, left) + text.charAt(right) + text.slice(left + 1, right) + text.charAt(left) + text.slice(right + 1)
}
