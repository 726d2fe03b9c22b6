import { measure } from './measure.mjs'
import { EXPRESS, FASTIFY, KOA, KOA_UNION, PETSTORE, startServer } from './servers.mjs'

/** The rate of the clients whose latency is measured while another key keeps sending. */
const OTHERS_PER_SECOND = 200
const OTHERS_CONNECTIONS = 8

export function get(path, key) {
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\n\r\n`
}

export function post(path, key, body) {
  const head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`
  return `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

/**
 * Starts one server per name, calls `work` with them by name, and stops them. PETSTORE starts first, because it creates the indexes that its
 * peers use too.
 */
export async function withServers({ options }, names, storage, work) {
  const servers = {}
  const started = []
  try {
    for (const [index, name] of names.entries()) {
      const server = await startServer(name, storage, name === PETSTORE && index === 0 ? options.nodeArgs : [])
      started.push(server)
      servers[name] ??= []
      servers[name].push(server)
    }
    return await work(servers)
  } finally {
    await Promise.all(started.map(({ stop }) => stop()))
  }
}

/**
 * Measures cases in interleaved rounds: A B C, B C A, … `measureCase` returns the metrics of one case. Returns each case with its metrics by
 * round.
 */
export async function runRounds({ options, log }, cases, measureCase) {
  const results = cases.map(({ name }) => ({ name, rounds: [] }))
  for (let round = 0; round < options.rounds; round += 1) {
    log(`round ${round + 1} of ${options.rounds}`)
    for (const offset of cases.keys()) {
      const index = (offset + round) % cases.length
      results[index].rounds.push(await measureCase(cases[index]))
    }
  }
  return results
}

/**
 * Measures each case at saturation and at a fixed rate, which is the same for all: half of what the slowest case reached after warming up. A
 * case has `name`, `servers`, `requests` and the expected `status`. With `others`, which are requests with the `othersStatus`, also measures
 * their latency alone and while the requests of the case are sent at the fixed rate.
 */
export async function compareUnderLoad(context, storage, cases) {
  const { options, generator, databases, log } = context
  const redis = storage.redisUrl === undefined ? undefined : await databases.redis()
  const toGroup = ({ servers, requests, status }) => ({ ports: servers.map(({ port }) => port), requests, status })
  const run = (servers, groups, seconds = options.seconds) => measure({ generator, redis, servers, groups, seconds })
  const { connections } = options
  const saturate = async (each, seconds) => {
    await fillKeyCaches(generator, each)
    return run(each.servers, [{ ...toGroup(each), connections }], seconds)
  }

  log('warming up')
  for (const each of cases) await saturate(each, options.warmUpSeconds)
  const reached = []
  for (const each of cases) reached.push((await saturate(each, options.warmUpSeconds)).perSecond)
  const fixedPerSecond = Math.max(10, Math.floor(Math.min(...reached) / 20) * 10)

  const results = await runRounds(context, cases, async (each) => {
    const saturated = await saturate(each)
    const main = { ...toGroup(each), connections, perSecond: fixedPerSecond }
    const fixed = await run(each.servers, [main])
    const atFixedRate = { fixedP50Ms: fixed.p50Ms, fixedP99Ms: fixed.p99Ms, fixedServerMicros: fixed.serverMicros }
    return { ...saturated, ...atFixedRate, ...(each.others ? await measureOthers(run, each, main) : {}) }
  })
  const ours = cases.flatMap(({ servers }) => servers).filter(({ name }) => name === PETSTORE)
  const outages = await Promise.all(ours.map((server) => server.countRedisOutages()))
  return { fixedPerSecond, redisOutages: Math.max(...outages), cases: results }
}

/**
 * Sends each request to each server once. While the other servers were measured, the records of API keys in the caches have expired, and looking
 * up all keys at the same time would be most of the work.
 */
async function fillKeyCaches(generator, { servers, requests, others = [] }) {
  const all = [...requests, ...others]
  const groups = servers.map(({ port }) => ({ ports: [port], requests: all, connections: 8, atMost: all.length }))
  await generator.generate({ groups, seconds: 30 })
}

async function measureOthers(run, { servers, others, othersStatus }, main) {
  const group = {
    ports: main.ports,
    requests: others,
    status: othersStatus,
    connections: OTHERS_CONNECTIONS,
    perSecond: OTHERS_PER_SECOND,
  }
  const alone = await run(servers, [group])
  const beside = await run(servers, [group, main])
  return { aloneP99Ms: alone.p99Ms, besideP99Ms: beside.p99Ms }
}

/** A scene whose requests and status are the same for all servers. */
export function makeLoadScene({ name, title, servers, pets = 10_000, status, makeRequests }) {
  return {
    name,
    title,
    async run(context) {
      const storage = await context.databases.makeStorage(pets)
      return withServers(context, servers, storage, async (started) => {
        const cases = servers.map((each) => ({ name: each, servers: started[each], requests: makeRequests(storage, each), status }))
        return compareUnderLoad(context, storage, cases)
      })
    },
  }
}

export const ALL_SERVERS = [PETSTORE, FASTIFY, KOA, KOA_UNION, EXPRESS]
export const SERVERS_WITH_QUOTAS = [PETSTORE, FASTIFY, KOA_UNION, EXPRESS]
export const SERVERS_WITH_PETS = [PETSTORE, FASTIFY, EXPRESS]
