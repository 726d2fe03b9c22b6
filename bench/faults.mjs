// Causes faults while clients use three replicas behind nginx, and draws what happened: npm run faults
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { CryptoApiKeySecrets } from '../dist/src/adapters/node/crypto-api-key-secrets.js'
import { cleanUpNow } from '../dist/test/support/engines/cleanup.js'
import { countMostGranted } from '../dist/test/support/load-checks.js'
import { OpenLoopLoad } from '../dist/test/support/open-loop-load.js'
import { listAllPets } from '../dist/test/support/pet-writers.js'
import { ServiceBehindNginx } from '../dist/test/support/service-behind-nginx.js'
import { issueStoredKeys } from '../dist/test/support/stored-key.js'
import { drawDashboard } from './dashboard.mjs'
import { drawTimeline } from './fault-timeline.mjs'
import { startPrometheus } from './prometheus.mjs'

const REPLICAS = 3
const WARM_UP_MS = 10_000
const PAUSE_MS = 6_000
const FAULT_MS = 10_000
const SLOW_REDIS_MS = 200
/** One minute becomes five seconds, so that alerts fire during faults of ten seconds. */
const ALERT_DELAY_DIVISOR = 12

const toPath = (relative) => fileURLToPath(new URL(relative, import.meta.url))

/** The requests per second of each kind of client. */
function makeCallers(keys) {
  const list = { path: '/v1/pets?limit=20' }
  const toPet = (number) => ({
    path: '/v1/pets',
    method: 'POST',
    key: keys.writes.key,
    body: { name: `Pet ${number}`, categoryId: 7 },
    headers: { 'idempotency-key': `pet-${number}` },
  })
  return [
    { name: 'reads', perSecond: 60, toRequest: () => ({ ...list, key: keys.reads.key }) },
    { name: 'writes', perSecond: 12, toRequest: toPet },
    { name: 'business', perSecond: 12, toRequest: () => ({ path: '/v1/store/orders', key: keys.business.key }) },
    { name: 'pro', perSecond: 4, toRequest: () => ({ ...list, key: keys.pro.key }) },
    { name: 'exceeds', perSecond: 8, toRequest: () => ({ ...list, key: keys.exceeds.key }) },
    { name: 'free', perSecond: 1.5, toRequest: () => ({ ...list, key: keys.free.key }) },
    { name: 'invalid key', perSecond: 0.3, toRequest: () => ({ ...list, key: keys.unknown.key }) },
    { name: 'no key', perSecond: 0.5, toRequest: () => list },
  ].map(({ perSecond, ...caller }) => ({ ...caller, everyMs: 1000 / perSecond }))
}

/** In order. Each fault ends after `FAULT_MS`, or without `end`, when `begin` is done. */
function listFaults(service) {
  const { mongo, redis } = service
  return [
    // First, because the server that stands in for MongoDB may corrupt an index if it is killed after several hundred writes.
    { name: 'MongoDB killed', begin: () => mongo.kill(), end: () => mongo.start() },
    { name: 'MongoDB frozen', begin: () => mongo.freeze(), end: () => mongo.unfreeze() },
    { name: 'Redis frozen', begin: () => redis.freeze(), end: () => redis.unfreeze() },
    { name: 'Redis killed, starts empty', begin: () => redis.kill(), end: () => redis.start() },
    { name: 'Redis slow', begin: () => service.setRedisDelay(SLOW_REDIS_MS), end: () => service.setRedisDelay(0) },
    { name: 'replica killed', begin: () => service.getReplica(0).stop('SIGKILL'), end: () => service.startAgain(0) },
    {
      name: 'replica frozen',
      begin: async () => service.getReplica(1).signal('SIGSTOP'),
      end: async () => service.getReplica(1).signal('SIGCONT'),
    },
    { name: 'rolling restart', begin: () => service.restartOneAfterTheOther() },
    { name: 'nginx reload', begin: () => service.reloadNginx() },
  ]
}

try {
  await run()
} finally {
  await cleanUpNow()
}
process.exit()

async function run() {
  const service = await ServiceBehindNginx.start(REPLICAS)
  const prometheus = await startPrometheus(
    service.replicas.map(({ adminUrl }) => adminUrl),
    { alertDelayDivisor: ALERT_DELAY_DIVISOR },
  )
  const keys = await issueKeys(service.settings.MONGODB_URL)
  const callers = makeCallers(keys)
  // Without writes, because the first fault must happen after few of them.
  const warmUp = new OpenLoopLoad(
    service.nginx.url,
    callers.filter(({ name }) => name === 'reads'),
  )
  await sleep(WARM_UP_MS)
  await warmUp.stop()

  const log = []
  const load = new OpenLoopLoad(service.nginx.url, callers)
  const zeroMs = performance.now()
  const now = () => toSeconds(performance.now() - zeroMs)
  const faults = []
  for (const { name, begin, end } of listFaults(service)) {
    await sleep(PAUSE_MS)
    const replicas = [...service.replicas]
    const fault = { name, begin: now() }
    console.error(`${fault.begin} s: ${name}`)
    await begin()
    if (end) {
      await sleep(FAULT_MS)
      fault.repair = now()
      await end()
    }
    fault.end = now()
    await service.untilHealthy()
    faults.push({ ...fault, healthy: now() })
    // The log of a process that was replaced is otherwise lost.
    log.push(...replicas.filter((replica) => !service.replicas.includes(replica)).flatMap(readLog))
  }
  await sleep(PAUSE_MS)
  const seconds = Math.floor(now())
  await load.stop()
  log.push(...service.replicas.flatMap(readLog))

  const span = { startSeconds: (performance.timeOrigin + zeroMs) / 1000, stepSeconds: 1 }
  span.endSeconds = span.startSeconds + seconds
  const result = {
    date: new Date().toISOString(),
    commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim(),
    machine: { cpus: cpus().length, cpuModel: cpus()[0].model, node: process.versions.node, loadAverage: loadavg()[0] },
    faults: faults.map((fault) => ({ ...fault, ...summarize(load.hits, zeroMs, fault) })),
    alerts: await readAlerts(prometheus, span),
    guarantees: await checkGuarantees(service, load, keys),
    log: summarizeLog(log, span.startSeconds),
    perSecond: Array.from({ length: seconds }, (_, second) => ({ second, ...measure(selectDue(load.hits, zeroMs, second, second + 1)) })),
  }
  writeFileSync(toPath('results/faults.json'), toJson(result))
  writeFileSync(toPath('../docs/operations/faults.svg'), drawTimeline(result))
  const { svg, emptyPanels } = await drawDashboard(prometheus, span)
  writeFileSync(toPath('../docs/operations/dashboard.svg'), svg)
  console.table(result.faults.map(({ statuses, ...fault }) => ({ ...fault, statuses: JSON.stringify(statuses) })))
  console.log(result.guarantees, result.alerts)
  await service.stop()
  await prometheus.stop()
  if (emptyPanels.length > 0) throw new Error(`These panels of the dashboard have no data: ${emptyPanels.join(', ')}`)
}

async function issueKeys(mongodbUrl) {
  const limits = { minute: 100_000, day: 1_000_000 }
  const plans = { reads: 'enterprise', writes: 'enterprise', business: 'business', pro: 'pro', exceeds: 'pro', free: 'free' }
  const newKeys = Object.values(plans).map((plan) => ({ owner: 'faults', plan, ...(plan === 'enterprise' ? { limits } : {}) }))
  const issued = await issueStoredKeys(mongodbUrl, newKeys)
  const unknown = { key: new CryptoApiKeySecrets().generate().secret }
  return { ...Object.fromEntries(Object.keys(plans).map((name, index) => [name, issued[index]])), unknown }
}

function selectDue(hits, zeroMs, from, to) {
  return hits.filter(({ startMs }) => startMs >= zeroMs + from * 1000 && startMs < zeroMs + to * 1000)
}

/** What the clients received for the requests that were due. Status 0 means that the connection failed. */
function measure(hits) {
  const statuses = {}
  for (const { status = 0 } of hits) statuses[status] = (statuses[status] ?? 0) + 1
  const sorted = hits.map(({ startMs, endMs }) => endMs - startMs).toSorted((a, b) => a - b)
  const at = (part) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] * 10) / 10
  return { requests: hits.length, statuses, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) }
}

/** From the start of the fault until the service is healthy again. */
function summarize(hits, zeroMs, { begin, healthy }) {
  const during = selectDue(hits, zeroMs, begin, healthy)
  const failed = during.filter(({ status = 0 }) => status === 0 || status >= 500).map(({ startMs }) => startMs - zeroMs)
  const errors = failed.length === 0 ? {} : { firstError: toSeconds(Math.min(...failed)), lastError: toSeconds(Math.max(...failed)) }
  return { ...measure(during), ...errors }
}

/** When each alert fired for at least one replica. */
async function readAlerts(prometheus, span) {
  const series = await prometheus.queryRange('max by (alertname) (ALERTS{alertstate="firing"})', span)
  return series.map(({ metric, values }) => {
    const seconds = values.map(([time]) => Math.round(time - span.startSeconds))
    const periods = []
    for (const second of seconds) {
      if (periods.at(-1)?.to === second) periods.at(-1).to = second + 1
      else periods.push({ from: second, to: second + 1 })
    }
    return { name: metric.alertname, periods }
  })
}

/** Throws if an acknowledged pet is missing or was added twice. */
async function checkGuarantees(service, { hits }, keys) {
  const acknowledged = hits.filter(({ caller, status }) => caller === 'writes' && status === 201).map(({ body }) => JSON.parse(body).id)
  const pets = await listAllPets(service.getReplica(0), keys.reads.key)
  const ids = new Set(pets.map(({ id }) => id))
  const names = new Set(pets.map(({ name }) => name))
  const guarantees = {
    acknowledgedPets: acknowledged.length,
    lostPets: acknowledged.filter((id) => !ids.has(id)).length,
    petsAddedTwice: pets.length - names.size,
    mostGrantedPerMinute: Object.fromEntries(
      ['exceeds', 'free'].map((name) => [
        name,
        countMostGranted(
          hits.filter(({ caller }) => caller === name),
          keys[name].keyId,
        ),
      ]),
    ),
  }
  if (guarantees.lostPets > 0 || guarantees.petsAddedTwice > 0) throw new Error(JSON.stringify(guarantees))
  return guarantees
}

/** Every line of the log, except those of requests that did not get 503. */
function readLog({ url, logLines }) {
  const lines = logLines.map((line) => JSON.parse(line)).filter(({ msg, status }) => msg !== 'request' || status === 503)
  return lines.map(({ time, level, msg, reason }) => ({ time, replica: new URL(url).host, level, msg, reason }))
}

/** How often each replica logged what, and when for the first and the last time. */
function summarizeLog(log, startSeconds) {
  const groups = new Map()
  for (const { time, reason, ...line } of log.toSorted((a, b) => a.time - b.time)) {
    const second = toSeconds(time - startSeconds * 1000)
    const content = { ...line, reason: reason?.replace(/connection \d+/, 'connection …') }
    const group = groups.get(JSON.stringify(content)) ?? { ...content, count: 0, first: second }
    groups.set(JSON.stringify(content), { ...group, count: group.count + 1, last: second })
  }
  return [...groups.values()].filter(({ last }) => last >= 0)
}

function toSeconds(ms) {
  return Math.round(ms / 100) / 10
}

/** One line per element of the lists. */
function toJson(result) {
  const toLines = (list) => `[\n${list.map((element) => `    ${JSON.stringify(element)}`).join(',\n')}\n  ]`
  const parts = Object.entries(result).map(
    ([name, value]) => `  "${name}": ${Array.isArray(value) ? toLines(value) : JSON.stringify(value)}`,
  )
  return `{\n${parts.join(',\n')}\n}\n`
}
