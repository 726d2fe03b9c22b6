import { expect } from 'chai'
import { getMinutePhaseSeconds, getWindowNumber, getWindowResetSeconds } from '../../src/core/window.js'

const MIDNIGHT_MS = Date.UTC(2026, 10, 23)
const NOON_MS = MIDNIGHT_MS + 12 * 3_600_000
const DAY_MS = 86_400_000

describe('the minute phase of a key', () => {
  it('is a whole number from 0 to 59, the same each time', () => {
    for (const keyId of ['', 'k', 'key_7f3kQ', 'schlüssel', '\u{1f511}']) {
      expect(getMinutePhaseSeconds(keyId)).to.satisfy(Number.isInteger).and.to.be.within(0, 59)
      expect(getMinutePhaseSeconds(keyId)).to.equal(getMinutePhaseSeconds(keyId))
    }
  })

  for (const [ids, makeKeyId] of Object.entries({
    numbered: (number: number) => `key_${number}`,
    random: (number: number) => (number * 2_654_435_761 * 48_271).toString(36),
  })) {
    it(`spreads 10,000 ${ids} key IDs evenly over the 60 seconds`, () => {
      const keysPerSecond = new Array<number>(60).fill(0)
      for (let number = 0; number < 10_000; number++) {
        const phaseSeconds = getMinutePhaseSeconds(makeKeyId(number))
        keysPerSecond[phaseSeconds] = (keysPerSecond[phaseSeconds] ?? 0) + 1
      }
      // The mean is 167 and the standard deviation 13.
      expect(keysPerSecond).to.have.length(60)
      expect(Math.min(...keysPerSecond)).to.be.above(105)
      expect(Math.max(...keysPerSecond)).to.be.below(233)
    })
  }
})

describe('quota windows', () => {
  it('start at 00:00 UTC for the day, regardless of the phase', () => {
    const number = getWindowNumber('day', { nowMs: MIDNIGHT_MS, phaseSeconds: 20 })
    expect(number).to.equal(MIDNIGHT_MS / DAY_MS)
    expect(getWindowResetSeconds('day', number, { phaseSeconds: 20 })).to.equal((MIDNIGHT_MS + DAY_MS) / 1000)
  })

  it('start at second 40 of the minute for a key with phase 20', () => {
    const startMs = NOON_MS + 40_000
    const number = getWindowNumber('minute', { nowMs: startMs, phaseSeconds: 20 })
    expect(number).to.equal(NOON_MS / 60_000 + 1)
    expect(getWindowNumber('minute', { nowMs: startMs - 1, phaseSeconds: 20 })).to.equal(number - 1)
    expect(getWindowResetSeconds('minute', number, { phaseSeconds: 20 })).to.equal(startMs / 1000 + 60)
  })

  it('end in the millisecond in which the next one starts, for every phase', () => {
    for (const name of ['minute', 'day'] as const) {
      for (let phaseSeconds = 0; phaseSeconds < 60; phaseSeconds++) {
        const number = getWindowNumber(name, { nowMs: NOON_MS + 12_345, phaseSeconds })
        const resetMs = getWindowResetSeconds(name, number, { phaseSeconds }) * 1000
        expect(getWindowNumber(name, { nowMs: resetMs - 1, phaseSeconds })).to.equal(number)
        expect(getWindowNumber(name, { nowMs: resetMs, phaseSeconds })).to.equal(number + 1)
      }
    }
  })
})
