import { MemoryPetIds } from '../../src/adapters/memory/memory-pet-ids.js'
import { SAMPLE_PETS } from '../../src/adapters/memory/sample-data.js'
import type { TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import type { MongoDatabase } from '../support/engines/mongo-engine.js'
import { aMongoDatabase } from '../support/engines/mongo-engine.js'
import type { OwnEngine } from '../support/engines/own-engine.js'
import { anOwnRedis } from '../support/engines/redis-engine.js'
import { describeEveryResponse } from '../support/every-response.js'
import { plansWithHighFailureLimit } from '../support/sweep.js'
import type { UnreliablePetStore } from '../support/unreliable-pet-store.js'
import { until } from '../support/until.js'
import { PREFIX } from '../support/redis-replica.js'

let mongo: MongoDatabase | undefined
let redis: OwnEngine | undefined

/** Stores keys and orders in MongoDB, quotas in Redis, and pets in `pets`. */
async function openShared(context: Mocha.Context, pets: UnreliablePetStore): Promise<TestApi> {
  mongo = await aMongoDatabase(context)
  redis = await anOwnRedis(context)
  return startApi({
    config: {
      plans: plansWithHighFailureLimit(),
      distributed: { mongodbUrl: mongo.url, redisUrl: redis.url, redisPrefix: PREFIX },
      expectedReplicas: 2,
    },
    doubles: { pets, petIds: new MemoryPetIds(SAMPLE_PETS.at(-1)?.id) },
  })
}

describe('with MongoDB and Redis,', () => {
  after(async () => {
    await redis?.stop()
    await mongo?.drop()
  })

  describeEveryResponse('of one of several replicas', openShared)
})

describe('with MongoDB, while Redis is unavailable,', () => {
  after(async () => {
    await redis?.stop()
    await mongo?.drop()
  })

  describeEveryResponse('of one of several replicas', async (context, pets) => {
    const api = await openShared(context, pets)
    await redis?.kill()
    await until('the circuit breaker is open', () => !api.redis?.breaker.isUp)
    return api
  })
})
