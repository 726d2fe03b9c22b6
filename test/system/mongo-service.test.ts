import { expect } from 'chai'
import { MongoConnection } from '../../src/adapters/mongo/mongo-connection.js'
import { MongoIdempotencyStore } from '../../src/adapters/mongo/mongo-idempotency-store.js'
import { MongoPetIds } from '../../src/adapters/mongo/mongo-pet-ids.js'
import { SystemClock } from '../../src/adapters/node/system-clock.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import { makeCreatePet } from '../../src/core/use-cases/create-pet.js'
import { rejection } from '../contracts/rejection.js'
import { expectError } from '../support/responses.js'
import { useDatabases } from '../support/engines/use-databases.js'
import { sharedSettings } from '../support/replicas.js'
import type { ListedPet } from '../support/pet-writers.js'
import { listAllPets, toIdempotencyKey, PetWriters, postPet } from '../support/pet-writers.js'
import type { ServiceProcess, Settings } from '../support/process.js'
import { endProcesses, issueKey, runPetstoreJson, startService } from '../support/process.js'
import { UnreliablePetStore } from '../support/unreliable-pet-store.js'
import { until } from '../support/until.js'

describe('two processes of the service on one MongoDB', () => {
  let settings: Settings
  let services: readonly [ServiceProcess, ServiceProcess]
  let key: string
  let keyId: string

  after(endProcesses)
  const databases = useDatabases()
  before(async () => {
    settings = sharedSettings(databases.mongo, databases.redis.url)
    services = await Promise.all([startService(settings), startService(settings)])
    ;({ key, keyId } = await issueKey(settings))
  })

  it('assign unique IDs to pets that are created concurrently, and each lists all of them', async () => {
    const names = Array.from({ length: 300 }, (_, index) => `Twin ${index}`)
    const responses = await Promise.all(names.map((name, index) => services[index % 2 === 0 ? 0 : 1].send('/v1/pets', aPetNamed(name))))
    const acknowledged = responses.map(({ status, json }) => {
      expect(status).to.equal(201)
      return json as ListedPet
    })
    expect(new Set(acknowledged.map(({ id }) => id)).size).to.equal(300)
    expect(acknowledged.map(({ name }) => name)).to.deep.equal(names)
    for (const service of services) expect(await listAllPets(service, key)).to.include.deep.members(acknowledged)
  })

  it('create one pet for 40 concurrent requests with the same Idempotency-Key, which all get the same response', async () => {
    for (let round = 0; round < 5; round++) {
      const name = `Only one of round ${round}`
      const responses = await Promise.all(Array.from({ length: 40 }, (_, index) => postPet(services[index % 2 === 0 ? 0 : 1], key, name)))
      expect(new Set(responses.map(({ status, text }) => `${status} ${text}`))).to.have.property('size', 1)
      expect(responses[0]).to.have.property('status', 201)
      expect(responses.filter(({ headers }) => headers['idempotent-replayed'] === undefined)).to.have.length(1)
      expect((await listAllPets(services[0], key)).filter((pet) => pet.name === name)).to.deep.equal([responses[0]?.json])
    }
  })

  it('offer no demo key on their docs pages', async () => {
    for (const service of services) {
      expect(await service.send('/docs/demo-key.json')).to.deep.include({ status: 200, json: {} })
    }
  })

  it('accept each other’s cursors', async () => {
    await postPet(services[0], key, 'First of two')
    await postPet(services[0], key, 'Second of two')
    const page = await services[0].send('/v1/pets?limit=1', { key })
    const [, next = ''] = /<([^>]+)>; rel="next"/.exec(String(page.headers['link'])) ?? []
    expect((await services[1].send(next, { key })).status).to.equal(200)
  })

  it('return the claimed ID for all retries of a request that crashed after it claimed the ID', async () => {
    const claimedId = await crashBetweenTheWrites('Half created')
    expect((await listAllPets(services[0], key)).map(({ name }) => name)).to.not.include('Half created')

    const first = await postPet(services[1], key, 'Half created')
    const others = [await postPet(services[0], key, 'Half created'), await postPet(services[1], key, 'Half created')]
    expect(first).to.have.property('status', 201)
    expect(BigInt((first.json as ListedPet).id)).to.equal(claimedId)
    for (const other of others) expect(other).to.include({ status: 201, text: first.text })
    expect((await listAllPets(services[0], key)).filter(({ name }) => name === 'Half created')).to.deep.equal([first.json])
  })

  it('keep one pet per Idempotency-Key if one is killed during writes and the other gets the retries', async () => {
    const killedService = await startService(settings)
    const writers = new PetWriters(killedService, key, 16)
    const acknowledged = () => new Set(writers.acknowledged.map(({ name }) => name))
    try {
      await until('100 pets are acknowledged', () => writers.count(201) >= 100)
      killedService.signal('SIGKILL')
      ;[writers.service] = services
      await killedService.ended
      const broken = new Set(writers.written.filter(({ response }) => response === undefined).map(({ name }) => name))
      await until(
        'all requests without a response are acknowledged',
        () => broken.size > 0 && [...broken].every((name) => acknowledged().has(name)),
      )
    } finally {
      await writers.stop()
    }

    const pets = (await listAllPets(services[1], key)).filter(({ name }) => name.startsWith('Writer '))
    expect(new Set(pets.map(({ name }) => name)).size).to.equal(pets.length)
    expect(new Set(pets.map(({ id }) => id)).size).to.equal(pets.length)
    expect(pets).to.include.deep.members(writers.acknowledged.map(({ response }) => response?.json as ListedPet))
  })

  it('reject a key at most 10 s after it is revoked, and no other key', async () => {
    const revokedKey = await issueKey(settings)
    const getStatus = async (service: ServiceProcess) => (await service.send('/v1/pets?limit=1', { key: revokedKey.key })).status
    for (const service of services) expect(await getStatus(service)).to.equal(200)
    await runPetstoreJson(['keys', 'revoke', revokedKey.keyId], settings)
    await Promise.all(services.map((service) => until('the key is rejected', async () => (await getStatus(service)) === 401, 10_000)))
    for (const service of services) {
      expectError(await service.send('/v1/pets', { key: revokedKey.key }), 401, 'invalid_api_key')
      expect((await service.send('/v1/pets', { key })).status).to.equal(200)
    }
  }).timeout(15_000)

  function aPetNamed(name: string) {
    return { method: 'POST', key, body: { name, categoryId: 7 } }
  }

  /** Runs the code of the service up to a crash: the ID is claimed, but the pet is not stored. Returns the claimed ID. */
  async function crashBetweenTheWrites(name: string): Promise<bigint> {
    const connection = new MongoConnection(databases.mongo.url)
    try {
      const pets = new UnreliablePetStore()
      pets.failure = new StoreUnavailable('The process ends here')
      const idempotency = new MongoIdempotencyStore(connection, new SystemClock())
      const createPet = makeCreatePet({ pets, petIds: new MongoPetIds(connection, 1), idempotency })
      const scope = { keyId, idempotencyKey: toIdempotencyKey(name) }
      expect(await rejection(createPet({ name, categoryId: 7n, status: 'available' }, scope))).to.equal(pets.failure)
      const unlike = { fingerprint: 'of the test', petId: 0n }
      return (await idempotency.claim(scope, unlike)).petId
    } finally {
      await connection.close()
    }
  }
})
