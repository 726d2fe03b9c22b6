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
})
