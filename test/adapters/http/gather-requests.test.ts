import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { gatherRequests } from '../../../src/adapters/http/middleware/gather-requests.js'
import type { RequestContext } from '../../../src/adapters/http/pipeline/context.js'
import { rejection } from '../../contracts/rejection.js'

const CONTEXT = {} as RequestContext

describe('gathered requests', () => {
  it('continue together when their turn of the event loop ends, and no later', async () => {
    const gather = gatherRequests()
    const events: string[] = []
    const sendRequest = (name: string) => gather(CONTEXT, async () => void events.push(name))
    const first = [sendRequest('first'), sendRequest('second')]
    await Promise.resolve()
    events.push('turn')
    // Runs after the callback in which the requests continue, and before the next turn ends.
    await setImmediate()
    events.push('next turn')
    await Promise.all([...first, sendRequest('third')])
    expect(events).to.deep.equal(['turn', 'first', 'second', 'next turn', 'third'])
  })

  it('do not affect each other if one fails', async () => {
    const gather = gatherRequests()
    const failure = new Error('fails')
    const [failed, succeeded] = [gather(CONTEXT, () => Promise.reject(failure)), gather(CONTEXT, async () => 'done')]
    expect(await rejection(failed as Promise<unknown>)).to.equal(failure)
    expect(await succeeded).to.equal('done')
  })
})
