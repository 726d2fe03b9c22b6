import { expect } from 'chai'
import { useDatabases } from '../support/engines/use-databases.js'
import { withMongo } from '../support/engines/mongo-client.js'
import type { ListedPet } from '../support/pet-writers.js'
import { listAllPets, postPet } from '../support/pet-writers.js'
import type { ServiceProcess, Settings } from '../support/process.js'
import { endProcesses, issueKey, startService } from '../support/process.js'
import { sharedSettings } from '../support/replicas.js'

const PETS = 30

describe('the service after the collection of counters was restored from a backup', () => {
  after(endProcesses)
  const databases = useDatabases()
  let settings: Settings
  let key: string

  before(async () => {
    settings = { ...sharedSettings(databases.mongo, databases.redis.url), ID_BLOCK_SIZE: '10' }
    ;({ key } = await issueKey(settings))
  })

  const restoreCounter = (last: bigint) =>
    withMongo(databases.mongo.url, (client) =>
      client.db().collection<{ _id: string }>('counters').updateOne({ _id: 'pets' }, { $set: { last } }),
    )

  it('adds every pet, with and without Idempotency-Key, on a replica that has reserved IDs and on a new one', async () => {
    const running = await startService(settings)
    const added = await addPets([running], 'before')
    await restoreCounter(5n)
    const newer = await startService(settings)
    added.push(...(await addPets([running, newer], 'after')))
    expect(new Set(added.map(({ id }) => id)).size).to.equal(3 * 2 * PETS)
    expect(await listAllPets(newer, key)).to.have.deep.members(added)
  })

  /** Adds pets through each service, with and without idempotency keys. */
  async function addPets(services: readonly ServiceProcess[], name: string): Promise<ListedPet[]> {
    const responses = []
    for (let count = 0; count < PETS; count++) {
      for (const [index, service] of services.entries()) {
        responses.push(await postPet(service, key, `${name} ${index} ${count}`))
        responses.push(await service.send('/v1/pets', { method: 'POST', key, body: { name, categoryId: 7 } }))
      }
    }
    expect(new Set(responses.map(({ status, text }) => (status === 201 ? '' : text)))).to.deep.equal(new Set(['']))
    for (const { headers } of responses) expect(headers).to.not.have.property('idempotent-replayed')
    return responses.map(({ json }) => json as ListedPet)
  }
})
