import { expect } from 'chai'
import { ExpiringMap } from '../../../src/adapters/memory/expiring-map.js'

describe('the expiring map', () => {
  it('returns the latest value of a key until it expires, including falsy values', () => {
    const map = new ExpiringMap<unknown>()
    for (const [value, expiresAtMs] of [
      ['one', 1000],
      ['two', 3000],
      [null, 700],
      [0, 5000],
      ['', 10],
      [false, 20],
    ] as const) {
      map.set('a', value, expiresAtMs, 0)
      expect([map.get('a', expiresAtMs - 1), map.get('a', expiresAtMs), map.size]).to.deep.equal([value, undefined, 1])
    }
    expect(map.get('b', 0)).to.equal(undefined)
  })

  it('keeps all of 30,000 valid entries while many others are added and expire', () => {
    const map = new ExpiringMap<number>()
    for (let index = 0; index < 30_000; index++) map.set(`live ${index}`, index, 1_000_000, index)
    for (let index = 0; index < 30_000; index++) map.set(`short ${index}`, index, 30_001 + index, 30_000 + index)
    const lost = Array.from({ length: 30_000 }, (_, index) => index).filter((index) => map.get(`live ${index}`, 999_999) !== index)
    expect(lost).to.deep.equal([])
  })

  it('has removed 100,000 expired entries when about as many new ones have been added', () => {
    const map = new ExpiringMap<number>()
    for (let index = 0; index < 100_000; index++) map.set(`old ${index}`, index, 1000, 0)
    for (let index = 0; index < 110_000; index++) map.set(`new ${index}`, index, 1_000_000, 1000)
    expect(map.size).to.equal(110_000)
  })

  it('removes expired entries that are behind long-lived ones', () => {
    const map = new ExpiringMap<number>()
    for (let index = 0; index < 1000; index++) map.set(`long ${index}`, index, 1_000_000, 0)
    for (let index = 0; index < 20_000; index++) map.set(`short ${index}`, index, 1000, 0)
    for (let index = 0; index < 22_000; index++) map.set(`new ${index}`, index, 1_000_000, 1000)
    expect(map.size).to.equal(23_000)
    for (let index = 0; index < 1000; index++) expect(map.get(`long ${index}`, 1000)).to.equal(index)
  })

  it('removes expired entries even if only one key is set', () => {
    const map = new ExpiringMap<number>()
    for (let index = 0; index < 1000; index++) map.set(`old ${index}`, index, 1000, 0)
    for (let count = 0; count < 1100; count++) map.set('one', count, 1_000_000, 1000)
    expect(map.size).to.equal(1)
    expect(map.get('one', 1000)).to.equal(1099)
  })

  it('contains at most three times the valid entries under constant traffic', () => {
    const map = new ExpiringMap<number>()
    let largest = 0
    for (let ms = 0; ms < 100_000; ms++) {
      map.set(`at ${ms}`, ms, ms + 1000, ms)
      largest = Math.max(largest, map.size)
    }
    expect(largest).to.be.within(1000, 3000)
  })

  it('adds an entry to 100,000 entries at most 20 times slower than to 1,000, a margin for memory access', () => {
    const few = measureSetsMs(1000)
    const many = measureSetsMs(100_000)
    expect(many / few).to.be.below(20)
  })
})

/** The fastest of 20 rounds of 5,000 calls, to reduce the influence of other processes. */
function measureSetsMs(liveEntries: number): number {
  const map = new ExpiringMap<number>()
  for (let index = 0; index < liveEntries; index++) map.set(`key ${index}`, index, 1_000_000, 0)
  const rounds = Array.from({ length: 20 }, (_, round) => {
    const startMs = performance.now()
    for (let count = 0; count < 5000; count++) map.set(`key ${(count * 7919 * (round + 1)) % liveEntries}`, count, 1_000_000, 0)
    return performance.now() - startMs
  })
  return Math.min(...rounds)
}
