import { MongoClient } from 'mongodb'

const WITHIN_MS = 2_000
const DROPPED_WITHIN_MS = 10_000

export async function pingMongo(url: string, withinMs = WITHIN_MS): Promise<void> {
  await withMongo(url, withinMs, (client) => client.db('admin').command({ ping: 1 }))
}

/** The database that the URL names. */
export async function dropMongoDatabase(url: string): Promise<void> {
  await withMongo(url, DROPPED_WITHIN_MS, (client) => client.db().dropDatabase())
}

/** A connection for one purpose, which fails instead of waiting. */
async function withMongo(url: string, withinMs: number, work: (client: MongoClient) => Promise<unknown>): Promise<void> {
  const client = new MongoClient(url, { serverSelectionTimeoutMS: withinMs, connectTimeoutMS: withinMs, socketTimeoutMS: withinMs })
  try {
    await work(client)
  } finally {
    await client.close()
  }
}
