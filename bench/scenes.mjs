import { setTimeout as sleep } from 'node:timers/promises'
import { CryptoApiKeySecrets } from '../dist/src/adapters/node/crypto-api-key-secrets.js'
import { sumRedisBytes } from './databases.mjs'
import * as load from './load-scene.mjs'
import {
  ALL_SERVERS,
  compareUnderLoad,
  get,
  makeLoadScene,
  post,
  runRounds,
  SERVERS_WITH_PETS,
  SERVERS_WITH_QUOTAS,
} from './load-scene.mjs'
import { NO_LIMITS, PETSTORE, readResidentMb } from './servers.mjs'

const PAGE_SIZE = 20
const DEEP_PAGE = 5_000
/** A full deep page, and one more pet on the next page. */
export const MIN_PETS = DEEP_PAGE * PAGE_SIZE + 1
/** Returns 404 without access to MongoDB. */
const NO_PET = '/v1/pets/x'
const FIRST_PAGE = `/v1/pets?limit=${PAGE_SIZE}`
const IDLE_MS = 2_000

const oneKey = makeLoadScene({
  name: 'one-key',
  title: 'Key check and quota in Redis, one key',
  servers: ALL_SERVERS,
  status: 404,
  makeRequests: ({ keys }) => [get(NO_PET, keys[0].key)],
})

const thousandKeys = makeLoadScene({
  name: 'thousand-keys',
  title: 'Key check and quota in Redis, 1,000 keys',
  servers: SERVERS_WITH_QUOTAS,
  status: 404,
  makeRequests: ({ keys }) => keys.map(({ key }) => get(NO_PET, key)),
})

const EXHAUSTED = ', exhausted key'

const exhaustedKey = {
  name: 'exhausted-key',
  title: 'An exhausted key that keeps sending',
  async run(context) {
    const storage = await context.databases.makeStorage(10_000)
    const others = storage.keys.slice(1, 101).map(({ key }) => get(NO_PET, key))
    return load.withServers(context, SERVERS_WITH_QUOTAS, storage, (started) => {
      const oneKeyCase = { name: PETSTORE, servers: started[PETSTORE], requests: [get(NO_PET, storage.keys[0].key)], status: 404 }
      const cases = SERVERS_WITH_QUOTAS.map((name) => ({
        name: name + EXHAUSTED,
        servers: started[name],
        requests: [get(NO_PET, storage.exhaustedKey.key)],
        status: 429,
        others,
        othersStatus: 404,
      }))
      return compareUnderLoad(context, storage, [...cases, oneKeyCase])
    })
  },
}

const invalidKey = makeLoadScene({
  name: 'invalid-key',
  title: '401: a key with a wrong checksum',
  servers: SERVERS_WITH_QUOTAS,
  status: 401,
  makeRequests: () => [get(NO_PET, `pst_live_${'x'.repeat(36)}`)],
})

const listSamePage = makeLoadScene({
  name: 'list-same-page',
  title: 'List of 20 from MongoDB, the same page for all clients',
  servers: SERVERS_WITH_PETS,
  status: 200,
  makeRequests: ({ keys }) => keys.map(({ key }) => get(FIRST_PAGE, key)),
})

const listDifferentPages = {
  name: 'list-different-pages',
  title: 'List of 20 from MongoDB, different pages',
  async run(context) {
    const storage = await context.databases.makeStorage(10_000)
    return load.withServers(context, SERVERS_WITH_PETS, storage, async (started) => {
      const pages = await walk(started[PETSTORE][0], storage, 400)
      const cases = SERVERS_WITH_PETS.map((name) => ({
        name,
        servers: started[name],
        requests: pages.map((page, index) => get(toPagePath(name, page), storage.keys[index].key)),
        status: 200,
      }))
      return compareUnderLoad(context, storage, cases)
    })
  },
}

const create = makeLoadScene({
  name: 'create',
  title: 'Create a pet in MongoDB',
  servers: SERVERS_WITH_PETS,
  pets: 1_000,
  status: 201,
  makeRequests: ({ keys }) => keys.map(({ key }) => post('/v1/pets', key, '{"name":"Rex","categoryId":7,"status":"available"}')),
})

export const toDeepName = (name, isDeep) => `${name}, ${isDeep ? 'page 5,000' : 'page 1'}`

const deepPage = {
  name: 'deep-page',
  title: 'Page 1 and page 5,000',
  async run(context) {
    const storage = await context.databases.makeStorage(context.options.pets)
    return load.withServers(context, SERVERS_WITH_PETS, storage, async (started) => {
      const page = (await walk(started[PETSTORE][0], storage, DEEP_PAGE - 1)).at(-1)
      const cases = SERVERS_WITH_PETS.flatMap((name) =>
        [false, true].map((isDeep) => ({
          name: toDeepName(name, isDeep),
          servers: started[name],
          requests: storage.keys.map(({ key }) => get(isDeep ? toPagePath(name, page) : FIRST_PAGE, key)),
          status: 200,
        })),
      )
      return compareUnderLoad(context, storage, cases)
    })
  },
}

/** Returns what is needed to request each page after the first: the cursor of the service, and the last pet ID before the page. */
async function walk({ url }, { keys }, count) {
  const pages = []
  let path = FIRST_PAGE
  while (pages.length < count) {
    const response = await fetch(url + path, { headers: { authorization: `Bearer ${keys[0].key}` } })
    const [, next, cursor] = /<([^>]*cursor=([^>&]+))>; rel="next"/.exec(response.headers.get('link') ?? '') ?? []
    if (next === undefined) throw new Error(`${path} returned ${response.status} without a link to the next page`)
    pages.push({ cursor, after: (await response.json()).at(-1).id })
    path = next
  }
  return pages
}

function toPagePath(name, { cursor, after }) {
  return `${FIRST_PAGE}&${name === PETSTORE ? `cursor=${cursor}` : `after=${after}`}`
}

export const toReplicasName = (count) => `${PETSTORE}, ${count} ${count === 1 ? 'replica' : 'replicas'}`

const replicas = {
  name: 'replicas',
  title: '1, 2 and 4 replicas, 1,000 keys',
  async run(context) {
    const storage = await context.databases.makeStorage(10_000)
    return load.withServers(context, [PETSTORE, PETSTORE, PETSTORE, PETSTORE], storage, async (started) => {
      const requests = storage.keys.map(({ key }) => get(NO_PET, key))
      const toCase = (count) => ({ name: toReplicasName(count), servers: started[PETSTORE].slice(0, count), requests, status: 404 })
      return compareUnderLoad(context, storage, [1, 2, 4].map(toCase))
    })
  },
}

const embedded = {
  name: 'embedded',
  title: 'List of 20 with all data in memory',
  async run(context) {
    const storage = makeEmbeddedStorage()
    return load.withServers(context, ALL_SERVERS, storage, async (started) => {
      await addPets(started[PETSTORE][0], 10)
      const cases = ALL_SERVERS.map((name) => ({
        name,
        servers: started[name],
        requests: [get(FIRST_PAGE, getEmbeddedKey(started[name][0], storage))],
        status: 200,
      }))
      return compareUnderLoad(context, storage, cases)
    })
  },
}

function makeEmbeddedStorage() {
  const { secret, keyId } = new CryptoApiKeySecrets().generate()
  return { keys: [{ key: secret, keyId, limits: NO_LIMITS }] }
}

function getEmbeddedKey({ name, demoKey }, { keys }) {
  return name === PETSTORE ? demoKey : keys[0].key
}

/** The service starts with ten pets, and its peers have twenty. */
async function addPets({ url, demoKey }, count) {
  const headers = { authorization: `Bearer ${demoKey}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ name: 'Rex', categoryId: 1 })
  for (let added = 0; added < count; added += 1) {
    const { status } = await fetch(`${url}/v1/pets`, { method: 'POST', headers, body })
    if (status !== 201) throw new Error(`Adding a pet returned ${status}`)
  }
}

const redisMemory = {
  name: 'redis-memory',
  title: 'Redis memory per active key, 1,000 keys',
  async run(context) {
    const storage = await context.databases.makeStorage(10_000)
    const redis = await context.databases.redis()
    return load.withServers(context, SERVERS_WITH_QUOTAS, storage, async (started) => {
      const cases = SERVERS_WITH_QUOTAS.map((name) => ({ name, url: started[name][0].url }))
      const results = []
      for (const { name, url } of cases) {
        const bytesBefore = await sumRedisBytes(redis)
        for (const { key } of storage.keys) await (await fetch(url + NO_PET, { headers: { authorization: `Bearer ${key}` } })).arrayBuffer()
        const bytesPerKey = ((await sumRedisBytes(redis)) - bytesBefore) / storage.keys.length
        results.push({ name, rounds: [{ bytesPerKey }] })
      }
      return { cases: results }
    })
  },
}

const start = {
  name: 'start',
  title: 'Start to the first 200 and idle memory, with all data in memory',
  async run(context) {
    const storage = makeEmbeddedStorage()
    const cases = ALL_SERVERS.map((name) => ({ name }))
    const results = await runRounds(context, cases, ({ name }) =>
      load.withServers(context, [name], storage, async (started) => {
        const [server] = started[name]
        const headers = { authorization: `Bearer ${getEmbeddedKey(server, storage)}` }
        const { status } = await fetch(server.url + FIRST_PAGE, { headers })
        const startMs = performance.now() - server.startedMs
        if (status !== 200) throw new Error(`The first response of ${name} was ${status} instead of 200`)
        await sleep(IDLE_MS)
        return { startMs, idleMb: readResidentMb(server.pid) }
      }),
    )
    return { cases: results }
  },
}

export const SCENES = [
  oneKey,
  thousandKeys,
  exhaustedKey,
  invalidKey,
  listSamePage,
  listDifferentPages,
  create,
  deepPage,
  replicas,
  embedded,
  redisMemory,
  start,
]
