import { MongoClient } from 'mongodb'
import type { ImageServer } from './engine-in-docker.js'

const SET_NAME = 'petstore'
const WITHIN_MS = 10_000

/**
 * How a `mongod` runs, as in the official image: as a replica set of one, because the service is made for a replica set. Drivers
 * discover the set from its only member, so the member listens on the same port inside the container as outside.
 */
export const mongoReplicaSet: ImageServer = {
  readyLine: /Waiting for connections/,
  innerPort: (port) => port,
  command: (port) => ['--replSet', SET_NAME, '--bind_ip_all', '--port', `${port}`],
  afterFirstStart: initiateReplicaSet,
}

/** The member becomes primary by itself afterwards: until then, drivers find no server for a command. */
export async function initiateReplicaSet(host: string, port: number): Promise<void> {
  const member = `${host}:${port}`
  const client = new MongoClient(`mongodb://${member}`, { directConnection: true, serverSelectionTimeoutMS: WITHIN_MS })
  try {
    await client.db('admin').command({ replSetInitiate: { _id: SET_NAME, members: [{ _id: 0, host: member }] } })
  } finally {
    await client.close()
  }
}
