import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Redis } from 'ioredis'
import { RateLimiterRedis, RateLimiterRes, RateLimiterUnion } from 'rate-limiter-flexible'

// A program of its own: what the stock library does for "60 a minute and 1,000 a day", with nothing of the service around it.
const client = new Redis(process.argv[2] ?? '')
const minute = new RateLimiterRedis({ storeClient: client, keyPrefix: 'minute', points: 60, duration: 60 })
const day = new RateLimiterRedis({ storeClient: client, keyPrefix: 'day', points: 1_000, duration: 86_400 })
const union = new RateLimiterUnion(minute, day)

/** A rejection is rejected with an object of what each limiter says. */
async function isServed(key: string): Promise<boolean> {
  try {
    await union.consume(key)
    return true
  } catch (rejection) {
    if (Object.values(rejection as object).every((each) => each instanceof RateLimiterRes)) return false
    throw rejection
  }
}

const server = createServer((req, res) => {
  const key = req.headers.authorization ?? ''
  const answer = async () => {
    if (req.url === '/usage') res.end(JSON.stringify({ dayUsed: (await day.get(key))?.consumedPoints ?? 0 }))
    else res.writeHead((await isServed(key)) ? 200 : 429).end()
  }
  answer().catch((error: unknown) => res.writeHead(500).end(String(error)))
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
