import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { coalesceReads } from '../../../src/adapters/http/operations/coalesce-reads.js'
import { rejection } from '../../contracts/rejection.js'
import { Gate } from '../../support/gate.js'
import { collectUnhandledRejections } from '../../support/unhandled-rejections.js'

describe('coalesced reads', () => {
  let rows: number
  let gate: Gate | undefined
  let failure: Error | undefined
  let startedReads: string[]
  let read: (query: string) => Promise<string>

  beforeEach(() => {
    rows = 0
    gate = undefined
    failure = undefined
    startedReads = []
    read = coalesceReads(async (query) => {
      startedReads.push(query)
      const result = `${query}: ${rows} rows`
      await gate?.pass()
      if (failure) throw failure
      return result
    })
  })

  it('read once for all calls for the same query in one callback, even if some of them waited for other promises', async () => {
    // Handlers run in promise callbacks too.
    await Promise.resolve()
    const readLater = async () => {
      for (let waited = 0; waited < 10; waited += 1) await Promise.resolve()
      return read('a')
    }
    expect(await Promise.all([read('a'), read('a'), readLater()])).to.deep.equal(['a: 0 rows', 'a: 0 rows', 'a: 0 rows'])
    expect(startedReads).to.deep.equal(['a'])
  })

  it('read once per query', async () => {
    expect(await Promise.all([read('a'), read('b'), read('a')])).to.deep.equal(['a: 0 rows', 'b: 0 rows', 'a: 0 rows'])
    expect(startedReads).to.deep.equal(['a', 'b'])
  })

  it('see every write that was complete before each of the calls', async () => {
    const first = read('a')
    rows = 1
    const second = read('a')
    expect(await Promise.all([first, second])).to.deep.equal(['a: 1 rows', 'a: 1 rows'])
  })

  it('are not shared with later calls, even while the read is in flight', async () => {
    gate = new Gate()
    const first = read('a')
    await setImmediate()
    rows = 1
    const second = read('a')
    await setImmediate()
    gate.open()
    expect(await Promise.all([first, second])).to.deep.equal(['a: 0 rows', 'a: 1 rows'])
  })

  it('throw an error to every call that shares them, and not to later calls', async () => {
    failure = new Error('fails')
    expect(await Promise.all([rejection(read('a')), rejection(read('a'))])).to.deep.equal([failure, failure])
    failure = undefined
    expect(await read('a')).to.equal('a: 0 rows')
  })

  it('cause no unhandled rejection if they fail after a request has given up', async () => {
    failure = new Error('fails')
    const unhandled = await collectUnhandledRejections(async () => {
      const given = [read('a'), read('a')].map((result) => Promise.race([result, Promise.resolve()]))
      expect(await Promise.all(given)).to.deep.equal([undefined, undefined])
    })
    expect(unhandled).to.deep.equal([])
  })
})
