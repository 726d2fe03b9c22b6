import { once } from 'node:events'
import { connect } from 'node:net'
import { expect } from 'chai'
import { MemoryQuotaStore } from '../../src/adapters/memory/memory-quota-store.js'
import { issueAmpleKey, withApi } from '../support/api.js'
import { MovableClock } from '../support/movable-clock.js'
import { countConnections, head } from '../support/raw-socket.js'
import { until } from '../support/until.js'

const REQUESTS = 20

/** Counts the callbacks of the event loop in which it decides requests. */
class CallbackCountingQuotaStore extends MemoryQuotaStore {
  callbacks = 0
  #isCounted = false

  override async take(...args: Parameters<MemoryQuotaStore['take']>) {
    if (!this.#isCounted) {
      this.#isCounted = true
      this.callbacks += 1
      process.nextTick(() => (this.#isCounted = false))
    }
    return super.take(...args)
  }
}

describe('requests that arrive on several connections in one turn of the event loop', () => {
  it('are decided in few callbacks, so that their decisions share calls to Redis', async () => {
    const clock = new MovableClock()
    const quotas = new CallbackCountingQuotaStore(clock)
    await withApi({ clock, doubles: { quotas } }, async (api) => {
      const request = head('GET /v1/pets HTTP/1.1', ['Host: pets', `Authorization: Bearer ${await issueAmpleKey(api)}`])
      const sockets = Array.from({ length: REQUESTS }, () => connect({ port: Number(new URL(api.url).port), host: '127.0.0.1' }))
      await until('the connections are open', async () => (await countConnections(api.server)) === REQUESTS)
      const send = () =>
        Promise.all(
          sockets.map(async (socket) => {
            socket.write(request)
            const [bytes] = (await once(socket, 'data')) as [Buffer]
            return bytes.toString('latin1', 0, 12)
          }),
        )
      // Fills the cache of API keys.
      await send()
      quotas.callbacks = 0
      expect(await send()).to.deep.equal(new Array<string>(REQUESTS).fill('HTTP/1.1 200'))
      expect(quotas.callbacks).to.be.within(1, REQUESTS / 2)
      for (const socket of sockets) socket.destroy()
    })
  })
})
