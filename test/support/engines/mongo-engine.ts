import { randomBytes } from 'node:crypto'
import { cleanUpAtEnd } from './cleanup.js'
import type { ContainerPlan } from './docker.js'
import { findImage, startContainer } from './docker.js'
import { dropMongoDatabase, pingMongo, withMongo } from './mongo-client.js'
import { withDatabase } from './mongo-url.js'
import { shareServer, withEngine } from './no-engine.js'
import type { OwnEngine, StartedEngine } from './own-engine.js'
import { toOwnEngine, untilItResponds } from './own-engine.js'

const REPLICA_SET = 'petstore'

/** A database that belongs to one suite, on a server that the whole test run shares. It is empty at first. */
export interface MongoDatabase {
  readonly url: string
  drop(): Promise<void>
}

/** For a `before` hook. Skips the suite if there is no MongoDB, and fails it if MongoDB does not start. */
export async function aMongoDatabase(context: Mocha.Context): Promise<MongoDatabase> {
  return withEngine(context, async () => {
    const url = withDatabase(await findSharedServer(), `petstore_test_${randomBytes(6).toString('hex')}`)
    const drop = () => dropMongoDatabase(url)
    return { url, drop: process.env['MONGODB_URL'] ? cleanUpAtEnd(drop) : drop }
  })
}

/** A server that a suite may freeze, kill and start again. Always a container, never the server of MONGODB_URL. */
export async function anOwnMongo(context: Mocha.Context): Promise<OwnEngine> {
  return withEngine(context, async () => toOwnEngine(await startMongoContainer(), pingMongo))
}

export async function startMongoContainer(): Promise<StartedEngine> {
  const image = await findImage({ variable: 'MONGODB_IMAGE', official: 'mongo:8', recipe: 'mongodb-wire' })
  const isBuiltLocally = image.startsWith('petstore-test/')
  const { host, port, server } = await startContainer({ image, ...(isBuiltLocally ? mongodbWire : mongoReplicaSet) })
  if (!isBuiltLocally) await initiateReplicaSet(host, port)
  const url = `mongodb://${host}:${port}`
  await untilItResponds(url, pingMongo)
  return { url, description: `${image} in Docker`, server }
}

type ServerPlan = Omit<ContainerPlan, 'image'>

const mongodbWire: ServerPlan = { readyLine: /mongodb-wire: ready/, innerPort: () => 27_017, command: () => [] }

/**
 * Runs `mongod`, as in the official image, as a replica set of one, because the service is made for a replica set. Drivers connect to
 * the address of the member, so the member listens on the same port inside the container as outside.
 */
export const mongoReplicaSet: ServerPlan = {
  readyLine: /Waiting for connections/,
  innerPort: (port) => port,
  command: (port) => ['--replSet', REPLICA_SET, '--bind_ip_all', '--port', `${port}`],
}

/** Afterwards, the member elects itself primary. Until then, drivers find no server for a command. */
export async function initiateReplicaSet(host: string, port: number): Promise<void> {
  const member = `${host}:${port}`
  const config = { _id: REPLICA_SET, members: [{ _id: 0, host: member }] }
  await withMongo(`mongodb://${member}/?directConnection=true`, (client) => client.db('admin').command({ replSetInitiate: config }))
}

const findSharedServer = shareServer('MONGODB_URL', pingMongo, startMongoContainer)
