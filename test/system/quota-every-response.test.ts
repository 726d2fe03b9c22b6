import { MemoryPetIds } from '../../src/adapters/memory/memory-pet-ids.js'
import { SAMPLE_PETS } from '../../src/adapters/memory/sample-data.js'
import type { RedisConnection } from '../../src/adapters/redis/redis-connection.js'
import { TOKENS } from '../../src/container.js'
import type { PetIds } from '../../src/core/ports/pet-ids.js'
import type { PetStore } from '../../src/core/ports/pet-store.js'
import type { TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import type { MongoDatabase } from '../support/engines/mongo-engine.js'
import { aMongoDatabase } from '../support/engines/mongo-engine.js'
import type { OwnEngine } from '../support/engines/own-engine.js'
import { anOwnRedis } from '../support/engines/redis-engine.js'
import { describeEveryResponse } from '../support/every-response.js'
import { patientPlans } from '../support/sweep.js'
import type { UnreliablePetStore } from '../support/unreliable-pet-store.js'
import { until } from '../support/until.js'

let mongo: MongoDatabase | undefined
let redis: OwnEngine | undefined

/** Keys and orders in MongoDB, quotas in Redis, and pets that can be made to fail. */
async function openShared(context: Mocha.Context, pets: UnreliablePetStore): Promise<TestApi> {
  mongo = await aMongoDatabase(context)
  redis = await anOwnRedis(context)
  return startApi({
    config: { plans: patientPlans(), distributed: { mongodbUrl: mongo.url, redisUrl: redis.url }, expectedReplicas: 2 },
    rebind(container) {
      container.rebind<PetStore>(TOKENS.pets).toConstantValue(pets)
      container.rebind<PetIds>(TOKENS.petIds).toConstantValue(new MemoryPetIds(SAMPLE_PETS.at(-1)?.id))
    },
  })
}

describe('on MongoDB and Redis,', () => {
  after(async () => {
    await redis?.stop()
    await mongo?.drop()
  })

  describeEveryResponse('by one of several replicas', openShared)
})

describe('on MongoDB, and Redis is away,', () => {
  after(async () => {
    await redis?.stop()
    await mongo?.drop()
  })

  describeEveryResponse('by one of several replicas', async (context, pets) => {
    const api = await openShared(context, pets)
    await redis?.kill()
    const { breaker } = api.container.get<RedisConnection>(TOKENS.redis)
    await until('the replica has noticed', () => !breaker.isUp)
    return api
  })
})
