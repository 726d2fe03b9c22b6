import { mock } from 'node:test'
import { expect } from 'chai'
import { Deadline } from '../../../src/adapters/http/pipeline/deadline.js'
import { StoreUnavailable } from '../../../src/core/errors.js'
import { rejection } from '../../contracts/rejection.js'
import { Gate } from '../../support/gate.js'
import { collectUnhandledRejections } from '../../support/unhandled-rejections.js'

const TIMEOUT_MS = 1_000
const never = () => new Promise<never>(() => {})

describe('the deadline of a request', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }))
  afterEach(() => mock.timers.reset())

  it('returns the result of work that finishes in time, and rethrows its error', async () => {
    const deadline = new Deadline(TIMEOUT_MS)
    const error = new TypeError('A bug')
    expect(await deadline.race(async () => 7)).to.equal(7)
    expect(await rejection(deadline.race(() => Promise.reject(error)))).to.equal(error)
  })

  it('is aborted and throws StoreUnavailable when the time is over, and not earlier', async () => {
    const deadline = new Deadline(TIMEOUT_MS)
    const outcome = rejection(deadline.race(never))
    mock.timers.tick(TIMEOUT_MS - 1)
    expect(deadline.aborted).to.equal(false)
    mock.timers.tick(1)
    expect(deadline.aborted).to.equal(true)
    expect(await outcome)
      .to.be.instanceOf(StoreUnavailable)
      .and.equal(deadline.reason)
  })

  it('applies to all work of the request together, and starts none after it', async () => {
    const deadline = new Deadline(TIMEOUT_MS)
    let isStarted = false
    await deadline.race(async () => mock.timers.tick(TIMEOUT_MS - 1))
    mock.timers.tick(1)
    expect(await rejection(deadline.race(async () => (isStarted = true)))).to.be.instanceOf(StoreUnavailable)
    expect(await rejection(deadline.pauseDuring(async () => (isStarted = true)))).to.be.instanceOf(StoreUnavailable)
    expect(isStarted).to.equal(false)
  })

  for (const [what, fail] of [
    ['succeeds', false],
    ['fails', true],
  ] as const) {
    it(`does not count the time of a pause whose work ${what}`, async () => {
      const deadline = new Deadline(TIMEOUT_MS)
      const gate = new Gate()
      const paused = deadline.pauseDuring(() => gate.pass().then(() => (fail ? Promise.reject(new Error('It fails')) : undefined)))
      mock.timers.tick(10 * TIMEOUT_MS)
      gate.open()
      await paused.catch(() => undefined)
      expect(deadline.aborted).to.equal(false)
      mock.timers.tick(TIMEOUT_MS)
      expect(deadline.aborted).to.equal(true)
    })
  }

  it('counts the time before and after a pause', async () => {
    let nowMs = 5_000
    const now = mock.method(performance, 'now', () => nowMs)
    const pass = (ms: number) => {
      nowMs += ms
      mock.timers.tick(ms)
    }
    try {
      const deadline = new Deadline(TIMEOUT_MS)
      pass(600)
      await deadline.pauseDuring(async () => pass(10 * TIMEOUT_MS))
      pass(399)
      expect(deadline.aborted).to.equal(false)
      pass(1)
      expect(deadline.aborted).to.equal(true)
    } finally {
      now.mock.restore()
    }
  })

  it('does not pass once the request has ended', () => {
    const deadline = new Deadline(TIMEOUT_MS)
    deadline.end()
    mock.timers.tick(10 * TIMEOUT_MS)
    expect(deadline.aborted).to.equal(false)
  })

  it('causes no unhandled rejection, whether work fails afterwards or nothing waits for it', async () => {
    let fail: (error: Error) => void = () => undefined
    const work = () => new Promise<never>((_, reject) => (fail = reject))
    const unhandled = await collectUnhandledRejections(async () => {
      const outcome = rejection(new Deadline(TIMEOUT_MS).race(work))
      new Deadline(TIMEOUT_MS)
      mock.timers.tick(TIMEOUT_MS)
      await outcome
      fail(new Error('Too late'))
    })
    expect(unhandled).to.deep.equal([])
  })
})
