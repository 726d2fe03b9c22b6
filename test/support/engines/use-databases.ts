import type { MongoDatabase } from './mongo-engine.js'
import { aMongoDatabase } from './mongo-engine.js'
import type { RedisDatabase } from './redis-engine.js'
import { aRedisDatabase } from './redis-engine.js'

export interface Databases {
  readonly mongo: MongoDatabase
  readonly redis: RedisDatabase
}

/**
 * Provides empty databases to the suite that calls this. The result can be used only in its hooks and tests. A hook that stops what uses the
 * databases must be registered before.
 */
export function useDatabases(): Databases {
  const databases: { mongo?: MongoDatabase; redis?: RedisDatabase } = {}
  before(async function () {
    databases.mongo = await aMongoDatabase(this)
    databases.redis = await aRedisDatabase(this)
  })
  after(async () => {
    await databases.redis?.release()
    await databases.mongo?.drop()
  })
  return databases as Databases
}
