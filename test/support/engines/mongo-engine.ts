import { randomBytes } from 'node:crypto'
import { announceEngine } from './announced.js'
import type { ImageServer } from './engine-in-docker.js'
import { EngineInDocker } from './engine-in-docker.js'
import { engineSettings } from './engine-settings.js'
import { homeMadeImage } from './home-made-image.js'
import { findOrSetUpDocker } from './machine.js'
import { dropMongoDatabase, pingMongo } from './mongo-client.js'
import { mongoReplicaSet } from './mongo-replica-set.js'
import { withDatabase } from './mongo-url.js'
import { EngineFailed } from './no-engine.js'
import { once } from './once.js'
import type { OwnEngine } from './own-engine.js'
import { ownEngine } from './own-engine.js'
import { isRemoved, removeAtTheEnd } from './remnants.js'
import { withPatience } from './with-patience.js'

const CONFIGURED_SERVER_ANSWERS_WITHIN_MS = 5_000

/** A database of a suite's own, empty at first, on a server that the whole run shares. */
export interface MongoDatabase {
  readonly url: string
  /** What the server is, for people. */
  readonly how: string
  drop(): Promise<void>
}

/** For a `before` hook. Where there is no MongoDB and none can be set up, the suite is skipped; where one does not start, it fails. */
export async function aMongoDatabase(context: Mocha.Context): Promise<MongoDatabase> {
  return withPatience(context, async () => {
    const server = await sharedServer()
    const url = withDatabase(server.url, `petstore_test_${randomBytes(6).toString('hex')}`)
    if (server.isConfigured) removeAtTheEnd('mongoDatabases', url)
    return {
      url,
      how: server.how,
      async drop() {
        await dropMongoDatabase(url)
        isRemoved('mongoDatabases', url)
      },
    }
  })
}

/** Sets up all that the other functions need, if anything. */
export async function prepareMongo(): Promise<void> {
  if (engineSettings().mongodbUrl === undefined) await inDocker.prepare(findOrSetUpDocker)
}

/** A server that a suite may freeze, kill and start again. Always in Docker: the one of MONGODB_URL is nobody's to kill. */
export async function anOwnMongo(context: Mocha.Context): Promise<OwnEngine> {
  return withPatience(context, async () => ownEngine(await inDocker.start(findOrSetUpDocker), pingMongo))
}

const mongodbWire: ImageServer = { readyLine: /mongodb-wire: ready/, innerPort: () => 27_017, command: () => [] }

const inDocker = new EngineInDocker({
  name: 'MongoDB',
  images: ({ mongodbImage }) => mongodbImage,
  homeMade: () => homeMadeImage('mongodb-wire-image.sh', 'mongodb-wire-entrypoint.sh'),
  script: 'mongodb-wire-image.sh',
  makingTakes: '1 to 3 minutes',
  server: ({ isHomeMade }) => (isHomeMade ? mongodbWire : mongoReplicaSet),
  url: (host, port) => `mongodb://${host}:${port}`,
  ping: pingMongo,
})

const sharedServer = once(async () => {
  const { mongodbUrl } = engineSettings()
  if (mongodbUrl === undefined) return { ...(await inDocker.start(findOrSetUpDocker)), isConfigured: false }
  try {
    await pingMongo(mongodbUrl, CONFIGURED_SERVER_ANSWERS_WITHIN_MS)
  } catch (error) {
    throw new EngineFailed('The server of MONGODB_URL does not answer', { cause: error })
  }
  announceEngine('MongoDB', 'MONGODB_URL')
  return { url: mongodbUrl, how: 'MONGODB_URL', isConfigured: true }
})
