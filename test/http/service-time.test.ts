import { once } from 'node:events'
import { connect } from 'node:net'
import { mock } from 'node:test'
import { expect } from 'chai'
import { MemoryPetIds } from '../../src/adapters/memory/memory-pet-ids.js'
import type { TestResponse } from '../support/api.js'
import { useApiPerTest } from '../support/api.js'
import { Gate } from '../support/gate.js'
import { HeldPetStore } from '../support/held-pet-store.js'
import { readRetryAfterSeconds } from '../support/quota-steps.js'
import { head } from '../support/raw-socket.js'
import { expectError, readQuotaHeaders } from '../support/responses.js'
import { collectUnhandledRejections } from '../support/unhandled-rejections.js'
import { WatchedApiKeyStore } from '../support/watched-api-key-store.js'

const SERVICE_TIMEOUT_MS = 2_000
const REX = { name: 'Rex', categoryId: 7 }

/** The memory pet IDs, which wait for the gate. */
class HeldPetIds extends MemoryPetIds {
  readonly gate = new Gate()

  override async next(): Promise<bigint> {
    await this.gate.pass()
    return super.next()
  }
}

describe('a request that is not served within 2 s', () => {
  let pets: HeldPetStore
  let petIds: HeldPetIds
  let apiKeyStore: WatchedApiKeyStore
  const api = useApiPerTest(() => {
    pets = new HeldPetStore()
    petIds = new HeldPetIds()
    apiKeyStore = new WatchedApiKeyStore()
    return { doubles: { pets, petIds, apiKeyStore } }
  })

  afterEach(() => mock.timers.reset())

  const remaining = async () => readQuotaHeaders(await api.call('/v1/pets/999')).remaining

  /** Sends the request and moves the time to its deadline once it waits for a store. */
  async function sendUntilDeadline(request: () => Promise<TestResponse>, isWaiting: () => boolean): Promise<TestResponse> {
    mock.timers.enable({ apis: ['setTimeout'] })
    const response = request()
    while (!isWaiting()) await new Promise((resolve) => setImmediate(resolve))
    mock.timers.tick(SERVICE_TIMEOUT_MS - 1)
    mock.timers.tick(1)
    const received = await response
    mock.timers.reset()
    return received
  }

  it('gets 503 with Retry-After and is refunded, and a late result changes nothing', async () => {
    const before = await remaining()
    const unhandled = await collectUnhandledRejections(async () => {
      const response = await sendUntilDeadline(
        () => api.call('/v1/pets'),
        () => pets.gate.heldCount === 1,
      )
      expectError(response, 503, 'service_unavailable')
      expect(readRetryAfterSeconds(response)).to.be.within(1, 10)
      expect(readQuotaHeaders(response).remaining).to.equal(before)
      pets.gate.open()
    })
    expect(unhandled).to.deep.equal([])
    expect(await remaining()).to.equal(before - 1)
    expect(api.logLines.filter(({ status }) => status === 503)).to.have.lengthOf(1)
  })

  it('is not charged if the lookup of its key is late', async () => {
    const { secret } = await api.issueKey('enterprise', { limits: { minute: 10, day: 10 } })
    const release = apiKeyStore.hold()
    const response = await sendUntilDeadline(
      () => api.send('/v1/pets/999', { key: secret }),
      () => apiKeyStore.queries.length === 1,
    )
    expectError(response, 503, 'service_unavailable')
    expect(readRetryAfterSeconds(response)).to.be.within(1, 10)
    apiKeyStore.failWith()
    release()
    expect(readQuotaHeaders(await api.send('/v1/pets/999', { key: secret })).remaining).to.equal(9)
  })

  it('adds no pet afterwards', async () => {
    const response = await sendUntilDeadline(
      () => api.postPet(REX, { 'idempotency-key': 'one' }),
      () => petIds.gate.heldCount === 1,
    )
    expectError(response, 503, 'service_unavailable')
    petIds.gate.open()
    pets.gate.open()
    expect((await api.call('/v1/pets')).json).to.deep.equal([])
    expect((await api.postPet(REX, { 'idempotency-key': 'one' })).headers).to.not.have.property('idempotent-replayed')
  })

  it('has a timer that ends with the request: requests that are served in time leave none', async () => {
    const countTimers = () => process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length
    const before = countTimers()
    for (let count = 0; count < 20; count += 1) await api.call(count % 2 === 0 ? '/v1/pets/999' : '/v1/none')
    expect(countTimers() - before).to.be.below(10)
  })

  it('is logged in one line with the reason, at the level info and without a stack trace', async () => {
    const before = api.logLines.length
    await sendUntilDeadline(
      () => api.call('/v1/pets'),
      () => pets.gate.heldCount === 1,
    )
    const lines = api.logLines.slice(before)
    expect(lines).to.have.lengthOf(1)
    expect(lines[0]).to.include({ level: 30, status: 503, code: 'service_unavailable', reason: 'The request was not served in time' })
    expect(lines[0]).to.not.have.property('err')
  })

  it('may wait longer than that for its body, and is then served', async () => {
    petIds.gate.open()
    const body = JSON.stringify(REX)
    const { hostname, port } = new URL(api.url)
    mock.timers.enable({ apis: ['setTimeout'] })
    const socket = connect(Number(port), hostname)
    try {
      const fields = ['Host: pets', `Authorization: Bearer ${api.key}`, 'Content-Type: application/json', `Content-Length: ${body.length}`]
      socket.write(head('POST /v1/pets HTTP/1.1', [...fields, 'Expect: 100-continue']))
      await once(socket, 'data')
      mock.timers.tick(3 * SERVICE_TIMEOUT_MS)
      const response = once(socket, 'data')
      socket.write(body)
      expect(String((await response)[0])).to.match(/^HTTP\/1\.1 201 /)
    } finally {
      socket.destroy()
    }
  })
})
