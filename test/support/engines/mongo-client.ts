import { MongoClient } from 'mongodb'

const RESPONSE_TIMEOUT_MS = 5_000

export async function pingMongo(url: string): Promise<void> {
  await withMongo(url, (client) => client.db('admin').command({ ping: 1 }))
}

/** Drops the database that the URL names. */
export async function dropMongoDatabase(url: string): Promise<void> {
  await withMongo(url, (client) => client.db().dropDatabase(), 10_000)
}

/** A short-lived connection that fails instead of waiting. */
export async function withMongo<Outcome>(
  url: string,
  work: (client: MongoClient) => Promise<Outcome>,
  withinMs = RESPONSE_TIMEOUT_MS,
): Promise<Outcome> {
  const client = new MongoClient(url, { serverSelectionTimeoutMS: withinMs, connectTimeoutMS: withinMs, socketTimeoutMS: withinMs })
  try {
    return await work(client)
  } finally {
    await client.close()
  }
}
