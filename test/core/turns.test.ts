import { expect } from 'chai'
import { StoreUnavailable } from '../../src/core/errors.js'
import { Turns } from '../../src/core/turns.js'
import { rejection } from '../contracts/rejection.js'

/** A task that a test ends. */
function aTask() {
  const ends: { end?: () => void; fail?: (error: Error) => void } = {}
  const done = new Promise<void>((resolve, reject) => {
    ends.end = resolve
    ends.fail = reject
  })
  return { run: () => done, end: () => ends.end?.(), fail: (error: Error) => ends.fail?.(error) }
}

describe('turns', () => {
  it('wake one waiter for each task that ends, the one that has waited longest', async () => {
    const turns = new Turns()
    const task = aTask()
    const taken = turns.take('one', task.run)
    const woken: string[] = []
    const first = turns.wait('one').then(() => woken.push('first'))
    void turns.wait('one').then(() => woken.push('second'))
    task.end()
    await Promise.all([taken, first])
    expect(woken).to.deep.equal(['first'])
  })

  it('let an outage that ends a task end all waiting for it, and no other failure', async () => {
    const turns = new Turns()
    const [away, broken] = [aTask(), aTask()]
    const outage = rejection(turns.take('away', away.run))
    const surprise = rejection(turns.take('broken', broken.run))
    const waiting = rejection(turns.wait('away'))
    const spared = turns.wait('broken')
    away.fail(new StoreUnavailable('away'))
    broken.fail(new TypeError('broken'))
    expect(await Promise.all([outage, waiting])).to.satisfy((errors: unknown[]) =>
      errors.every((error) => error instanceof StoreUnavailable),
    )
    expect(await surprise).to.be.instanceOf(TypeError)
    await spared
  })

  it('keep nothing of a name once its tasks have ended and its waiters have passed', async () => {
    const turns = new Turns()
    const task = aTask()
    const taken = turns.take('one', task.run)
    const passing = [turns.wait('one'), turns.wait('one')].map((waiting) => waiting.then(() => turns.pass('one')))
    expect(turns.size).to.equal(1)
    task.end()
    await Promise.all([taken, ...passing])
    expect(turns.size).to.equal(0)
    turns.pass('one')
    expect(turns.size).to.equal(0)
  })

  it('read again what was read while a task ended, so that a count of tasks is never older than what they changed', async () => {
    const turns = new Turns()
    const task = aTask()
    const taken = turns.take('one', task.run)
    const reads: number[] = []
    let counted = 0
    const read = readSettled(turns, async () => {
      const value = counted
      reads.push(value)
      await new Promise((resolve) => setImmediate(resolve))
      return value
    })
    counted = 1
    task.end()
    await taken
    expect(await read).to.equal(1)
    expect(reads).to.deep.equal([0, 1])
    expect(turns.underWay('one')).to.equal(0)
  })

  it('read once where no task of that name ended meanwhile, whatever others did', async () => {
    const turns = new Turns()
    const [mine, other] = [aTask(), aTask()]
    const taken = [turns.take('one', mine.run), turns.take('other', other.run)]
    let reads = 0
    const read = readSettled(turns, async () => {
      reads += 1
      other.end()
      await taken[1]
      return turns.underWay('one')
    })
    expect([await read, reads]).to.deep.equal([1, 1])
    mine.end()
    await taken[0]
  })

  it('read again after a task that failed, too', async () => {
    const turns = new Turns()
    const task = aTask()
    const taken = rejection(turns.take('one', task.run))
    let reads = 0
    const read = readSettled(turns, async () => {
      reads += 1
      if (reads === 1) task.fail(new TypeError('broken'))
      await taken
      return reads
    })
    expect(await read).to.equal(2)
  })

  it('keep nothing of a name that was only read, and hand on what a read fails with', async () => {
    const turns = new Turns()
    let answer: (value: number) => void = () => {}
    const read = readSettled(turns, () => new Promise<number>((resolve) => (answer = resolve)))
    expect(turns.size).to.equal(1)
    answer(7)
    expect(await read).to.equal(7)
    expect(turns.size).to.equal(0)
    const failure = new StoreUnavailable('away')
    expect(await rejection(readSettled(turns, () => Promise.reject(failure)))).to.equal(failure)
    expect(turns.size).to.equal(0)
  })

  it('keep a name while it is read, so that no task that comes and goes meanwhile is overlooked', async () => {
    const turns = new Turns()
    let reads = 0
    const read = readSettled(turns, async () => {
      reads += 1
      if (reads < 4) await turns.take('one', async () => undefined)
      return reads
    })
    expect(await read).to.equal(4)
  })

  it('give what was read to its use before a task that ends just then, so that both speak of the same moment', async () => {
    const turns = new Turns()
    const task = aTask()
    const taken = turns.take('one', task.run)
    const underWay = await turns.readSettled(
      'one',
      async () => queueMicrotask(() => task.end()),
      async () => turns.underWay('one'),
    )
    await taken
    expect(underWay).to.equal(1)
  })
})

async function readSettled<Value>(turns: Turns, read: () => Promise<Value>): Promise<Value> {
  return turns.readSettled('one', read, async (value) => value)
}
