import { expect } from 'chai'
import { MongoConnection } from '../../src/adapters/mongo/mongo-connection.js'
import { MongoIdempotencyStore } from '../../src/adapters/mongo/mongo-idempotency-store.js'
import { MongoPetIds } from '../../src/adapters/mongo/mongo-pet-ids.js'
import { SystemClock } from '../../src/adapters/node/system-clock.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import { makeCreatePet } from '../../src/core/use-cases/create-pet.js'
import { rejection } from '../contracts/rejection.js'
import { expectError } from '../support/responses.js'
import type { RedisDatabase } from '../support/engines/redis-engine.js'
import { aRedisDatabase } from '../support/engines/redis-engine.js'
import { sharedSettings } from '../support/replicas.js'
import type { MongoDatabase } from '../support/engines/mongo-engine.js'
import { aMongoDatabase } from '../support/engines/mongo-engine.js'
import type { ListedPet } from '../support/pet-writers.js'
import { allPets, idempotencyKeyOf, PetWriters, postPet } from '../support/pet-writers.js'
import type { ServiceProcess, Settings } from '../support/process.js'
import { endProcesses, issueKey, runPetstoreJson, startService } from '../support/process.js'
import { UnreliablePetStore } from '../support/unreliable-pet-store.js'
import { until } from '../support/until.js'

describe('two processes of the service on one MongoDB', () => {
  let database: MongoDatabase
  let redis: RedisDatabase
  let settings: Settings
  let services: readonly [ServiceProcess, ServiceProcess]
  let key: string
  let keyId: string

  before(async function () {
    database = await aMongoDatabase(this)
    redis = await aRedisDatabase(this)
    settings = sharedSettings(database, redis.url)
    services = await Promise.all([startService(settings), startService(settings)])
    ;({ key, keyId } = await issueKey(settings))
  })

  after(async () => {
    await endProcesses()
    await redis?.release()
    await database?.drop()
  })

  it('say that pets, orders and API keys live in MongoDB, and print no key', () => {
    for (const { notice } of services) {
      expect(notice).to.match(/\blive in MongoDB\b/)
      expect(notice).to.not.include('pst_live_')
    }
  })

  it('give the pets that they create at the same time ids of their own, and each shows all of them', async () => {
    const names = Array.from({ length: 300 }, (_, index) => `Twin ${index}`)
    const answers = await Promise.all(names.map((name, index) => services[index % 2 === 0 ? 0 : 1].send('/v1/pets', aPetOf(name))))
    const acknowledged = answers.map(({ status, json }) => {
      expect(status).to.equal(201)
      return json as ListedPet
    })
    expect(new Set(acknowledged.map(({ id }) => id)).size).to.equal(300)
    expect(acknowledged.map(({ name }) => name)).to.deep.equal(names)
    for (const service of services) expect(await allPets(service, key)).to.include.deep.members(acknowledged)
  })

  it('create one pet of 40 requests that come with one Idempotency-Key at the same time, and all get the same answer', async () => {
    for (let round = 0; round < 5; round++) {
      const name = `Only one of round ${round}`
      const answers = await Promise.all(Array.from({ length: 40 }, (_, index) => postPet(services[index % 2 === 0 ? 0 : 1], key, name)))
      expect(new Set(answers.map(({ status, text }) => `${status} ${text}`))).to.have.property('size', 1)
      expect(answers[0]).to.have.property('status', 201)
      expect(answers.filter(({ headers }) => headers['idempotent-replayed'] === undefined)).to.have.length(1)
      expect((await allPets(services[0], key)).filter((pet) => pet.name === name)).to.deep.equal([answers[0]?.json])
    }
  })

  it('understand each other’s cursors', async () => {
    await postPet(services[0], key, 'First of two')
    await postPet(services[0], key, 'Second of two')
    const page = await services[0].send('/v1/pets?limit=1', { key })
    const [, next = ''] = /<([^>]+)>; rel="next"/.exec(String(page.headers['link'])) ?? []
    expect((await services[1].send(next, { key })).status).to.equal(200)
  })

  it('answer the retry of a request that crashed behind its promised id with that id, and the next retries too', async () => {
    const promisedId = await crashBetweenTheWrites('Half created')
    expect((await allPets(services[0], key)).map(({ name }) => name)).to.not.include('Half created')

    const first = await postPet(services[1], key, 'Half created')
    const others = [await postPet(services[0], key, 'Half created'), await postPet(services[1], key, 'Half created')]
    expect(first).to.have.property('status', 201)
    expect(BigInt((first.json as ListedPet).id)).to.equal(promisedId)
    for (const other of others) expect(other).to.include({ status: 201, text: first.text })
    expect((await allPets(services[0], key)).filter(({ name }) => name === 'Half created')).to.deep.equal([first.json])
  })

  it('keep one pet for each Idempotency-Key when one of them is killed in the middle of writing and the other gets the retries', async () => {
    const doomed = await startService(settings)
    const writers = new PetWriters(doomed, key, 16)
    const acknowledged = () => new Set(writers.acknowledged.map(({ name }) => name))
    try {
      await until('100 pets are acknowledged', () => writers.count(201) >= 100)
      doomed.signal('SIGKILL')
      ;[writers.service] = services
      await doomed.ended
      const broken = new Set(writers.written.filter(({ answer }) => answer === undefined).map(({ name }) => name))
      await until('all that broke is acknowledged', () => broken.size > 0 && [...broken].every((name) => acknowledged().has(name)))
    } finally {
      await writers.stop()
    }

    const pets = (await allPets(services[1], key)).filter(({ name }) => name.startsWith('Writer '))
    expect(new Set(pets.map(({ name }) => name)).size).to.equal(pets.length)
    expect(new Set(pets.map(({ id }) => id)).size).to.equal(pets.length)
    expect(pets).to.include.deep.members(writers.acknowledged.map(({ answer }) => answer?.json as ListedPet))
  })

  it('both refuse a key 10 s after the command line has revoked it at the latest, and other keys work on', async () => {
    const doomed = await issueKey(settings)
    const statusOf = async (service: ServiceProcess) => (await service.send('/v1/pets?limit=1', { key: doomed.key })).status
    for (const service of services) expect(await statusOf(service)).to.equal(200)
    await runPetstoreJson(['keys', 'revoke', doomed.keyId], settings)
    await Promise.all(services.map((service) => until('the key is refused', async () => (await statusOf(service)) === 401, 10_000)))
    for (const service of services) {
      expectError(await service.send('/v1/pets', { key: doomed.key }), 401, 'invalid_api_key')
      expect((await service.send('/v1/pets', { key })).status).to.equal(200)
    }
  }).timeout(15_000)

  it('show that a key was used, and when, on the command line', async () => {
    const { lastUsedAt } = await runPetstoreJson<{ lastUsedAt: string }>(['keys', 'show', keyId], settings)
    expect(Date.now() - Date.parse(lastUsedAt)).to.be.within(0, 60 * 60 * 1000)
  })

  function aPetOf(name: string) {
    return { method: 'POST', key, body: { name, categoryId: 7 } }
  }

  /** The service's own code up to where its process dies: the id is promised, the pet not stored. */
  async function crashBetweenTheWrites(name: string): Promise<bigint> {
    const connection = new MongoConnection(database.url)
    try {
      const pets = new UnreliablePetStore()
      pets.failure = new StoreUnavailable('The process ends here')
      const idempotency = new MongoIdempotencyStore(connection.db, new SystemClock())
      const createPet = makeCreatePet({ pets, petIds: new MongoPetIds(connection.db, 1), idempotency })
      const scope = { keyId, idempotencyKey: idempotencyKeyOf(name) }
      expect(await rejection(createPet({ name, categoryId: 7n, status: 'available' }, scope))).to.equal(pets.failure)
      const unlike = { fingerprint: 'of the test', petId: 0n }
      return (await idempotency.claim(scope, unlike)).petId
    } finally {
      await connection.close()
    }
  }
})
