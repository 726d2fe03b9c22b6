import { expect } from 'chai'
import type { Document } from 'mongodb'
import { withMongo } from '../support/engines/mongo-client.js'
import { useDatabases } from '../support/engines/use-databases.js'
import type { ListedPet } from '../support/pet-writers.js'
import { postPet } from '../support/pet-writers.js'
import type { ServiceProcess, Settings } from '../support/process.js'
import { endProcesses, issueKey, runPetstoreJson } from '../support/process.js'
import { sharedSettings, startReplicas } from '../support/replicas.js'

type Backup = readonly { readonly collection: string; readonly documents: Document[] }[]

/** The steps of docs/operations/backup.md. */
describe('the service after MongoDB was restored from a backup', function () {
  this.timeout(120_000)
  after(endProcesses)
  const databases = useDatabases()
  let settings: Settings

  before(() => {
    settings = { ...sharedSettings(databases.mongo, databases.redis.url), ID_BLOCK_SIZE: '4' }
  })

  it('accepts a key that was revoked after the backup, until it is revoked again', async () => {
    const replicas = await startReplicas(2, settings)
    const { key, keyId } = await issueKey(settings)
    const backup = await backUp()
    // Redis then knows a key version that is higher than that of the record in the backup and of the second revocation.
    await runPetstoreJson(['keys', 'plan', keyId, 'pro'], settings)
    await runPetstoreJson(['keys', 'revoke', keyId], settings)
    expect(await listStatuses(replicas, key)).to.deep.equal([401, 401])

    const restored = await restore(replicas, backup)
    for (let times = 0; times < 3; times++) expect(await listStatuses(restored, key)).to.deep.equal([200, 200])
    await runPetstoreJson(['keys', 'revoke', keyId], settings)
    expect(await listStatuses(restored, key)).to.deep.equal([401, 401])
  })

  it('assigns the ID of a lost pet again, unless the counter is advanced', async () => {
    const { key } = await issueKey(settings)
    const addPets = async (replicas: readonly ServiceProcess[], namePrefix: string) => {
      const responses = await Promise.all(
        Array.from({ length: 20 }, (_, index) => postPet(replicas[0] as ServiceProcess, key, `${namePrefix} ${index}`)),
      )
      return responses.map(({ json }) => (json as ListedPet).id)
    }
    const replicas = await startReplicas(1, settings)
    await addPets(replicas, 'kept')
    const backup = await backUp()
    const lost = await addPets(replicas, 'lost')

    const unchanged = await restore(replicas, backup)
    expect(await addPets(unchanged, 'new')).to.include.oneOf(lost)

    const advance = () =>
      withMongo(databases.mongo.url, (client) =>
        client
          .db()
          .collection<{ _id: string }>('counters')
          .updateOne({ _id: 'pets' }, { $inc: { last: 1_000_000 } }),
      )
    const advanced = await restore(unchanged, backup, advance)
    expect(Math.min(...(await addPets(advanced, 'new')))).to.be.above(Math.max(...lost))
  })

  async function backUp(): Promise<Backup> {
    return withMongo(databases.mongo.url, async (client) => {
      const collections = ['apiKeys', 'counters', 'idempotency', 'pets']
      const read = (collection: string) => client.db().collection(collection, { promoteValues: false }).find().toArray()
      return Promise.all(collections.map(async (collection) => ({ collection, documents: await read(collection) })))
    })
  }

  /** Stops the replicas, and starts as many others. */
  async function restore(
    replicas: readonly ServiceProcess[],
    backup: Backup,
    beforeStart?: () => Promise<unknown>,
  ): Promise<ServiceProcess[]> {
    await Promise.all(replicas.map((replica) => replica.stop()))
    await withMongo(databases.mongo.url, async (client) => {
      for (const { collection, documents } of backup) {
        await client.db().collection(collection).deleteMany({})
        if (documents.length > 0) await client.db().collection(collection).insertMany(documents)
      }
    })
    await beforeStart?.()
    return startReplicas(replicas.length, settings)
  }
})

async function listStatuses(replicas: readonly ServiceProcess[], key: string): Promise<number[]> {
  return Promise.all(replicas.map(async (replica) => (await replica.send('/v1/pets', { key })).status))
}
