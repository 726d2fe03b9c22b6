// Koa, its router and the limiter that rate-limiter-flexible offers for two windows. Logs nothing, like Koa by default.
import Koa from 'koa'
import { MongoClient } from 'mongodb'
import { RateLimiterMemory, RateLimiterRedis, RateLimiterUnion } from 'rate-limiter-flexible'
import { authenticate } from './authenticate.mjs'
import { router } from './koa-router.mjs'
import { announce, connectToRedis, options, TOO_MANY_REQUESTS, UNAUTHENTICATED } from './options.mjs'

const storeClient = connectToRedis()
const mongo = options.mongodbUrl === undefined ? undefined : await new MongoClient(options.mongodbUrl).connect()
const apiKeys = mongo?.db().collection('apiKeys')

/** By limit per minute, because a limiter has one limit for all its keys. */
const unions = new Map()

function getUnion({ minute, day }) {
  const union = unions.get(minute) ?? new RateLimiterUnion(makeLimiter('minute', minute, 60), makeLimiter('day', day, 86_400))
  unions.set(minute, union)
  return union
}

function makeLimiter(keyPrefix, points, duration) {
  const limit = { keyPrefix, points, duration }
  return storeClient ? new RateLimiterRedis({ storeClient, ...limit }) : new RateLimiterMemory(limit)
}

const app = new Koa()
app.use(async (ctx, next) => {
  const key = await authenticate(ctx.get('authorization'), apiKeys)
  if (!key) {
    ctx.status = 401
    ctx.body = UNAUTHENTICATED
    return
  }
  try {
    const { minute } = await getUnion(key.limits).consume(key.keyId)
    ctx.set('X-RateLimit-Limit', `${key.limits.minute}`)
    ctx.set('X-RateLimit-Remaining', `${minute.remainingPoints}`)
    ctx.set('X-RateLimit-Reset', `${Math.ceil(minute.msBeforeNext / 1_000)}`)
  } catch (rejections) {
    if (rejections instanceof Error) throw rejections
    ctx.status = 429
    ctx.set('Retry-After', `${Math.ceil((rejections.minute ?? rejections.day).msBeforeNext / 1_000)}`)
    ctx.body = TOO_MANY_REQUESTS
    return
  }
  await next()
})
app.use(router.routes())
const server = app.listen(0, '127.0.0.1', () => announce(server.address().port))
