import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { MemoryPetStore } from '../../src/adapters/memory/memory-pet-store.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { PageRequest } from '../../src/core/page.js'
import type { Pet, PetStatus } from '../../src/core/pet.js'
import { issueAmpleKey, withApi } from '../support/api.js'
import { exchange, head } from '../support/raw-socket.js'

/** The memory store, but slow: `list` resolves some turns of the event loop after it has read. Throws `failure` while one is set. */
class SlowPetStore extends MemoryPetStore {
  listCount = 0
  failure: Error | undefined

  override async list(request: PageRequest<PetStatus>): Promise<readonly Pet[]> {
    this.listCount += 1
    const rows = await super.list(request)
    for (let turn = 0; turn < 20; turn += 1) await setImmediate()
    if (this.failure) throw this.failure
    return rows
  }
}

describe('identical lists', () => {
  /** Pipelined requests in one packet arrive in one turn of the event loop. */
  const makeRequests = (path: string, keys: readonly string[]) =>
    keys
      .map((key, index) => {
        const connection = index === keys.length - 1 ? 'close' : 'keep-alive'
        return head(`GET ${path} HTTP/1.1`, ['Host: x', `Authorization: Bearer ${key}`, `Connection: ${connection}`])
      })
      .join('')

  it('of several clients that arrive together read the store once, and each response has its own quota and request ID', () => {
    const pets = new SlowPetStore()
    return withApi({ doubles: { pets } }, async (api, key) => {
      const otherKey = await issueAmpleKey(api)
      for (let used = 0; used < 5; used += 1) await api.send('/v1/pets', { key: otherKey })
      // Otherwise, the lookups of the keys end in different turns.
      await api.send('/v1/pets', { key })
      pets.listCount = 0

      const responses = await exchange(api.url, makeRequests('/v1/pets?limit=5', [key, key, otherKey]))
      expect(responses.map(({ status, text }) => ({ status, text }))).to.deep.equal(new Array(3).fill({ status: 200, text: '[]' }))
      expect(responses.map(({ headers }) => headers['x-ratelimit-remaining'])).to.deep.equal(['99998', '99997', '99994'])
      expect(new Set(responses.map(({ headers }) => headers['x-request-id']))).to.have.property('size', 3)
      expect(pets.listCount).to.equal(1)
    })
  })

  it('each get 503 if the read fails, and are not charged', () => {
    const pets = new SlowPetStore()
    return withApi({ doubles: { pets } }, async (api, key) => {
      await api.send('/v1/pets', { key })
      pets.failure = new StoreUnavailable('down')
      const responses = await exchange(api.url, makeRequests('/v1/pets', [key, key, key]))
      expect(responses.map(({ status }) => status)).to.deep.equal([503, 503, 503])
      expect(pets.listCount).to.equal(2)
      pets.failure = undefined
      expect((await api.send('/v1/pets', { key })).headers['x-ratelimit-remaining']).to.equal('99998')
    })
  })

  it('contain every pet whose creation was acknowledged before the request, while other clients send the same request', () => {
    const pets = new SlowPetStore()
    return withApi({ doubles: { pets }, config: { hasSampleData: false } }, async (api, key) => {
      let isDone = false
      const others = Array.from({ length: 4 }, async () => {
        while (!isDone) await api.send('/v1/pets?limit=100', { key })
      })
      for (let count = 1; count <= 30; count += 1) {
        await api.send('/v1/pets', { method: 'POST', key, body: { name: 'Rex', categoryId: 7 } })
        expect((await api.send('/v1/pets?limit=100', { key })).json).to.have.lengthOf(count)
      }
      isDone = true
      await Promise.all(others)
    })
  })
})
