// Measures the figures of docs/operations/sizing.md: node bench/sizing.mjs. With --check, only checks that its imports exist.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { MongoClient } from 'mongodb'
import { CryptoApiKeySecrets } from '../dist/src/adapters/node/crypto-api-key-secrets.js'
import { cleanUpNow } from '../dist/test/support/engines/cleanup.js'
import { startCountingProxy } from './counting-proxy.mjs'
import { Databases } from './databases.mjs'
import { get, post } from './load-scene.mjs'
import { NO_LIMITS, PETSTORE, startLoadGenerator, startServer } from './servers.mjs'

const CONNECTIONS = 64
const LOAD_SECONDS = 3
const IDLE_SECONDS = 10
const MANY_KEYS = 20_000
const KEYS_PER_INSERT = 10_000
const MANY_CONNECTIONS = 2_000
const PETS = 10_000
/** Few, so that lookups of keys are a small part of the load. */
const ACTIVE_KEYS = 50
/** A database that is slower than the time limit of a request causes other statuses, which change the counts little. */
const MIN_SERVED_SHARE = 0.8
const BODY = '{"name":"Rex","categoryId":7,"status":"available"}'

if (process.argv.includes('--check')) process.exit()

const databases = new Databases()
const generator = startLoadGenerator()
try {
  const storage = await databases.makeStorage(PETS)
  const redis = await databases.redis()
  const redisProxy = await startCountingProxy(storage.redisUrl)
  const mongoProxy = await startCountingProxy(storage.mongodbUrl)
  const proxied = { ...storage, redisUrl: redisProxy.url, mongodbUrl: `${mongoProxy.url}?directConnection=true` }
  const server = await startServer(PETSTORE, proxied)
  await sleep(2_000)
  const context = { storage, redis: redis.operator, redisProxy, mongoProxy, server }
  await measureIdle(context)
  await measureRequests(context)
  await measureDocuments(context)
  await measureManyKeys(context)
  await measureManyConnections(context)
  await server.stop()
} finally {
  generator.stop()
  await databases.close()
  await cleanUpNow()
}

/** The service sends scripts only. */
async function countRedisCalls(redis) {
  return Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(await redis.info('commandstats'))?.[1] ?? 0)
}

/** What `work` costs at Redis and MongoDB. */
async function countLoad({ redis, redisProxy, mongoProxy }, work) {
  const before = { redis: { ...redisProxy.counts }, mongo: { ...mongoProxy.counts }, calls: await countRedisCalls(redis) }
  const result = await work()
  const subtract = (after, from) => Object.fromEntries(Object.keys(after).map((name) => [name, after[name] - from[name]]))
  const calls = (await countRedisCalls(redis)) - before.calls
  return { result, calls, redis: subtract(redisProxy.counts, before.redis), mongo: subtract(mongoProxy.counts, before.mongo) }
}

async function measureIdle(context) {
  const { calls, redis, mongo } = await countLoad(context, () => sleep(IDLE_SECONDS * 1_000))
  const perSecond = (value) => (value / IDLE_SECONDS).toFixed(1)
  print('An idle replica', [
    { what: 'memory', value: formatMemory(readMemory(context.server.pid)) },
    { what: 'connections to Redis', value: context.redisProxy.counts.open },
    { what: 'connections to MongoDB', value: context.mongoProxy.counts.open },
    { what: 'calls to Redis per second', value: perSecond(calls) },
    { what: 'bytes to and from Redis per second', value: perSecond(redis.sentBytes + redis.receivedBytes) },
    { what: 'messages to MongoDB per second', value: perSecond(mongo.messages) },
    { what: 'bytes to and from MongoDB per second', value: perSecond(mongo.sentBytes + mongo.receivedBytes) },
  ])
}

async function measureRequests(context) {
  const { storage, server } = context
  const keys = storage.keys.slice(0, ACTIVE_KEYS).map(({ key }) => key)
  const pages = await listPages(server, keys[0], 400)
  const idempotent = (key, index) =>
    post('/v1/pets', key, BODY).replace('Content-Length', `Idempotency-Key: sizing-${index}\r\nContent-Length`)
  const many = Array.from({ length: 40_000 }, (_, index) => index)
  const cases = [
    { name: 'key check and quota (404)', status: 404, make: (key) => get('/v1/pets/x', key) },
    { name: 'list of 20, different pages', status: 200, make: (key, index) => get(pages[index % pages.length], key) },
    { name: 'one pet', status: 200, make: (key, index) => get(`/v1/pets/${1 + (index % PETS)}`, key) },
    { name: 'add a pet', status: 201, make: (key) => post('/v1/pets', key, BODY) },
    { name: 'add a pet with Idempotency-Key', status: 201, make: (key, index) => idempotent(key, index), isUnique: true },
  ]
  const rows = []
  for (const { name, status, make, isUnique } of cases) {
    for (const connections of [1, CONNECTIONS]) {
      const indexes = isUnique ? many.splice(0, 15_000) : many.slice(0, 1_000)
      const requests = indexes.map((index) => make(keys[index % keys.length], index))
      await fillKeyCaches(server, keys)
      let peak = { totalMb: 0 }
      const timer = setInterval(() => (peak = [peak, readMemory(server.pid)].sort((a, b) => b.totalMb - a.totalMb)[0]), 100)
      const load = {
        groups: [{ ports: [server.port], requests, connections, ...(isUnique ? { atMost: requests.length } : {}) }],
        seconds: LOAD_SECONDS,
      }
      const { result, calls, redis, mongo } = await countLoad(context, () => generator.generate(load))
      clearInterval(timer)
      const [{ count, statuses }] = result.groups
      const served = statuses[status] ?? 0
      if (served < count * MIN_SERVED_SHARE) throw new Error(`${name}: ${JSON.stringify(statuses)}`)
      const per = (value) => (value / count).toFixed(value / count < 10 ? 2 : 0)
      rows.push({
        request: name,
        connections,
        'other statuses': count - served,
        'calls to Redis': per(calls),
        'bytes to Redis': per(redis.sentBytes),
        'bytes from Redis': per(redis.receivedBytes),
        'calls to MongoDB': per(mongo.messages),
        'bytes to MongoDB': per(mongo.sentBytes),
        'bytes from MongoDB': per(mongo.receivedBytes),
        'connections to MongoDB': context.mongoProxy.counts.open,
        'peak memory': formatMemory(peak),
      })
    }
  }
  print('Per request', rows)
}

async function listPages(server, key, count) {
  const pages = ['/v1/pets?limit=20']
  while (pages.length < count) {
    const response = await fetch(`${server.url}${pages.at(-1)}`, { headers: { Authorization: `Bearer ${key}` } })
    await response.text()
    const [, path] = /<([^>]+)>; rel="next"/.exec(response.headers.get('link')) ?? []
    if (path === undefined) break
    pages.push(path)
  }
  return pages
}

/** For 8 s afterwards, the load contains no lookups of keys. */
async function fillKeyCaches(server, keys) {
  const requests = keys.map((key) => get('/v1/pets/x', key))
  await generator.generate({ groups: [{ ports: [server.port], requests, connections: 8, atMost: requests.length }], seconds: 30 })
}

/** The sizes of documents as MongoDB stores them before compression, and of keys in Redis. */
async function measureDocuments({ storage, redis }) {
  const client = new MongoClient(storage.mongodbUrl)
  const rows = []
  for (const collection of ['pets', 'apiKeys', 'idempotency']) {
    const documents = await client.db().collection(collection, { raw: true }).find({}, { limit: 1_000 }).toArray()
    const sizes = documents.map(({ length }) => length)
    rows.push({ document: collection, 'BSON bytes': mean(sizes).toFixed(0), from: Math.min(...sizes), to: Math.max(...sizes) })
  }
  await client.close()
  print('Documents', rows)

  const kinds = []
  for (const kind of ['quota', 'epoch', 'replicas']) {
    const sizes = await Promise.all((await redis.keys(`petstore:${kind}:*`)).map((name) => redis.memory('USAGE', name)))
    kinds.push({ kind, count: sizes.length, 'mean bytes': mean(sizes).toFixed(0), from: Math.min(...sizes), to: Math.max(...sizes) })
  }
  print('Keys in Redis', kinds)
}

async function measureManyKeys({ storage, redis, server }) {
  const secrets = new CryptoApiKeySecrets()
  const generated = Array.from({ length: MANY_KEYS }, () => secrets.generate())
  const client = new MongoClient(storage.mongodbUrl)
  const now = new Date()
  const common = { owner: 'sizing', plan: 'enterprise', limits: NO_LIMITS, createdAt: now, generation: 1, lastUsedAt: now }
  const documents = generated.map(({ keyId, secretHash, hint }) => ({ _id: keyId, secretHash, hint, ...common }))
  const apiKeys = client.db().collection('apiKeys')
  while (documents.length > 0) await apiKeys.insertMany(documents.splice(0, KEYS_PER_INSERT))
  await client.close()
  const usedBytes = async () => Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))[1])
  const before = { redis: await usedBytes(), memory: readMemory(server.pid) }
  const requests = generated.map(({ secret }) => get('/v1/pets/x', secret))
  await generator.generate({ groups: [{ ports: [server.port], requests, connections: 8, atMost: MANY_KEYS }], seconds: 300 })
  print(`After one request of each of ${MANY_KEYS} keys`, [
    { what: 'Redis memory per key, bytes', value: ((await usedBytes()) - before.redis) / MANY_KEYS },
    { what: 'memory of the replica before', value: formatMemory(before.memory) },
    { what: 'memory of the replica after', value: formatMemory(readMemory(server.pid)) },
  ])
}

async function measureManyConnections({ storage, server }) {
  const before = readMemory(server.pid)
  const request = get('/v1/pets/x', storage.keys[0].key)
  const sockets = await Promise.all(
    Array.from({ length: MANY_CONNECTIONS }, async () => {
      const socket = connect(server.port, '127.0.0.1')
      socket.write(request)
      await once(socket, 'data')
      return socket
    }),
  )
  const after = readMemory(server.pid)
  for (const socket of sockets) socket.destroy()
  print(`${MANY_CONNECTIONS} idle connections of clients`, [
    { what: 'memory of the replica before', value: formatMemory(before) },
    { what: 'memory of the replica after', value: formatMemory(after) },
  ])
}

/** Resident memory in total, and the part that is not a mapped file: containers count only that part in full. */
function readMemory(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const readMb = (name) => (Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)[1]) * 1_024) / 1e6
  return { totalMb: readMb('VmRSS'), anonymousMb: readMb('RssAnon') }
}

function formatMemory({ totalMb, anonymousMb }) {
  return `${totalMb.toFixed(0)} MB, of which ${anonymousMb.toFixed(0)} MB anonymous`
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function print(title, rows) {
  console.log(title)
  console.table(rows)
}
