import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Redis } from 'ioredis'
import { RateLimiterRedis, RateLimiterRes, RateLimiterUnion } from 'rate-limiter-flexible'

// A separate program: the stock library for 60 requests per minute and 1,000 per day, without the service.
const client = new Redis(process.argv[2] ?? '')
const minute = new RateLimiterRedis({ storeClient: client, keyPrefix: 'minute', points: 60, duration: 60 })
const day = new RateLimiterRedis({ storeClient: client, keyPrefix: 'day', points: 1_000, duration: 86_400 })
const union = new RateLimiterUnion(minute, day)

/** `consume` rejects with an object that holds the result of each limiter. */
async function isAdmitted(key: string): Promise<boolean> {
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
  const respond = async () => {
    if (req.url === '/usage') res.end(JSON.stringify({ dayUsed: (await day.get(key))?.consumedPoints ?? 0 }))
    else res.writeHead((await isAdmitted(key)) ? 200 : 429).end()
  }
  respond().catch((error: unknown) => res.writeHead(500).end(String(error)))
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
