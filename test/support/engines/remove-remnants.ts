import { text } from 'node:stream/consumers'
import { findDocker } from './docker.js'
import { dropMongoDatabase } from './mongo-client.js'
import { flushRedisDatabase } from './redis-client.js'
import type { RemoteRemnants } from './remnants.js'

// A program of its own, started at the exit of a test run with what that has left behind.
const remnants = JSON.parse(await text(process.stdin)) as RemoteRemnants

const removals = await Promise.allSettled([
  removeContainers(remnants.containers),
  ...remnants.mongoDatabases.map(dropMongoDatabase),
  ...remnants.redisDatabases.map(flushRedisDatabase),
])
for (const removal of removals) {
  if (removal.status === 'rejected') {
    console.error(String(removal.reason))
    process.exitCode = 1
  }
}

async function removeContainers(ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  const docker = await findDocker()
  await Promise.all(ids.map((id) => docker.removeContainer(id)))
}
