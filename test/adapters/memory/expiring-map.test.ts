import { expect } from 'chai'
import { ExpiringMap } from '../../../src/adapters/memory/expiring-map.js'

describe('the expiring map', () => {
  it('has an entry until its end, and not at it', () => {
    const map = new ExpiringMap<string>()
    map.set('a', 'one', 1000, 0)
    expect(map.get('a', 0)).to.equal('one')
    expect(map.get('a', 999)).to.equal('one')
    expect(map.get('a', 1000)).to.equal(undefined)
    expect(map.get('a', 5000)).to.equal(undefined)
    expect(map.get('b', 0)).to.equal(undefined)
  })

  it('has the latest value and end of an entry that is set again, be it longer or shorter', () => {
    const map = new ExpiringMap<string>()
    map.set('a', 'one', 1000, 0)
    map.set('a', 'two', 3000, 500)
    expect(map.get('a', 2999)).to.equal('two')
    map.set('a', 'three', 700, 600)
    expect(map.get('a', 699)).to.equal('three')
    expect(map.get('a', 700)).to.equal(undefined)
    expect(map.size).to.equal(1)
  })

  it('has an entry again that is set after its end', () => {
    const map = new ExpiringMap<string>()
    map.set('a', 'one', 1000, 0)
    map.set('a', 'two', 2000, 1500)
    expect(map.get('a', 1500)).to.equal('two')
  })

  it('keeps values that look like nothing', () => {
    const map = new ExpiringMap<unknown>()
    for (const value of [0, '', false, null]) {
      map.set('a', value, 10, 0)
      expect(map.get('a', 0)).to.equal(value)
    }
  })

  it('loses none of 30,000 live entries, however many others come and end', () => {
    const map = new ExpiringMap<number>()
    for (let index = 0; index < 30_000; index++) map.set(`live ${index}`, index, 1_000_000, index)
    for (let index = 0; index < 30_000; index++) map.set(`short ${index}`, index, 30_001 + index, 30_000 + index)
    const lost = Array.from({ length: 30_000 }, (_, index) => index).filter((index) => map.get(`live ${index}`, 999_999) !== index)
    expect(lost).to.deep.equal([])
  })

  it('is rid of 100,000 ended entries by the time that about as many new ones have come', () => {
    const map = new ExpiringMap<number>()
    for (let index = 0; index < 100_000; index++) map.set(`old ${index}`, index, 1000, 0)
    for (let index = 0; index < 110_000; index++) map.set(`new ${index}`, index, 1_000_000, 1000)
    expect(map.size).to.equal(110_000)
  })

  it('is rid of ended entries though long-lived ones stand in front of them', () => {
    const map = new ExpiringMap<number>()
    for (let index = 0; index < 1000; index++) map.set(`long ${index}`, index, 1_000_000, 0)
    for (let index = 0; index < 20_000; index++) map.set(`short ${index}`, index, 1000, 0)
    for (let index = 0; index < 22_000; index++) map.set(`new ${index}`, index, 1_000_000, 1000)
    expect(map.size).to.equal(23_000)
    for (let index = 0; index < 1000; index++) expect(map.get(`long ${index}`, 1000)).to.equal(index)
  })

  it('is rid of ended entries though only one entry is ever set any more', () => {
    const map = new ExpiringMap<number>()
    for (let index = 0; index < 1000; index++) map.set(`old ${index}`, index, 1000, 0)
    for (let count = 0; count < 1100; count++) map.set('one', count, 1_000_000, 1000)
    expect(map.size).to.equal(1)
    expect(map.get('one', 1000)).to.equal(1099)
  })

  it('holds no more than three times the live entries under lasting traffic of which each entry lives a second', () => {
    const map = new ExpiringMap<number>()
    let largest = 0
    for (let ms = 0; ms < 100_000; ms++) {
      map.set(`at ${ms}`, ms, ms + 1000, ms)
      largest = Math.max(largest, map.size)
    }
    expect(largest).to.be.within(1000, 3000)
  })

  it('takes a new entry among 100,000 in the time that it takes among 1,000, a factor of 20 for the larger memory allowed', () => {
    const few = msOfSetsAmong(1000)
    const many = msOfSetsAmong(100_000)
    expect(many / few).to.be.below(20)
  })
})

/** The quickest of twenty rounds of 5,000, so that what else the machine does hardly counts. */
function msOfSetsAmong(liveEntries: number): number {
  const map = new ExpiringMap<number>()
  for (let index = 0; index < liveEntries; index++) map.set(`key ${index}`, index, 1_000_000, 0)
  const rounds = Array.from({ length: 20 }, (_, round) => {
    const beginMs = performance.now()
    for (let count = 0; count < 5000; count++) map.set(`key ${(count * 7919 * (round + 1)) % liveEntries}`, count, 1_000_000, 0)
    return performance.now() - beginMs
  })
  return Math.min(...rounds)
}
