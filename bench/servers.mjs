// Starts the servers to compare, and the processes that they need.
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cleanUpAtEnd } from '../dist/test/support/engines/cleanup.js'
import { until } from '../dist/test/support/until.js'

export const PETSTORE = 'Pet Store'
export const KOA = 'Koa'
export const KOA_UNION = 'Koa + RateLimiterUnion'
export const FASTIFY = 'Fastify + @fastify/rate-limit'
export const EXPRESS = 'Express + express-rate-limit'

const toPath = (relative) => fileURLToPath(new URL(relative, import.meta.url))
const PROGRAMS = {
  [PETSTORE]: [toPath('../dist/src/main.js'), 'serve'],
  [KOA]: [toPath('peers/koa.mjs')],
  [KOA_UNION]: [toPath('peers/koa-union.mjs')],
  [FASTIFY]: [toPath('peers/fastify.mjs')],
  [EXPRESS]: [toPath('peers/express.mjs')],
}

/** Higher than any load: the scenes measure requests that are admitted, except where a key has its own limits. */
const MAX_LIMIT = 2_147_483_647
export const NO_LIMITS = { minute: MAX_LIMIT, day: MAX_LIMIT }

const START_TIMEOUT_MS = 30_000
const STOP_TIMEOUT_MS = 30_000

const folder = mkdtempSync(join(tmpdir(), 'petstore-bench-'))
const running = new Set()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

/**
 * Starts a server that logs to a file, with `NODE_ENV=production`. `storage` is what `makeStorage` in databases.mjs returns, or has only
 * `keys` if all data lives in the process. Resolves when the server listens.
 */
export async function startServer(name, storage, nodeArgs = []) {
  const env = { PATH: process.env.PATH, NODE_ENV: 'production', ...(name === PETSTORE ? toSettings(storage) : toPeerSettings(storage)) }
  const logFile = join(mkdtempSync(join(folder, 'server-')), 'log')
  const log = openSync(logFile, 'w')
  const startedMs = performance.now()
  const child = spawn(process.execPath, [...nodeArgs, ...PROGRAMS[name]], { env, stdio: ['ignore', log, log] })
  closeSync(log)
  let hasEnded = false
  const ended = once(child, 'exit').then(() => {
    hasEnded = true
    running.delete(child)
  })
  const stop = cleanUpAtEnd(async () => {
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
    await ended
    clearTimeout(timer)
    rmSync(logFile, { force: true })
  })
  running.add(child)

  const find = (pattern) => pattern.exec(readFileSync(logFile, 'utf8'))?.[1]
  const findUrl = () => find(/^Listening on +(http\S+)\/v1$/m) ?? find(/"apiUrl":"([^"]+)".*"msg":"ready"/)
  await until(`${name} listens`, () => hasEnded || findUrl() !== undefined, START_TIMEOUT_MS)
  if (hasEnded) throw new Error(`${name} ended:\n${readFileSync(logFile, 'utf8')}`)
  const url = findUrl()
  return {
    name,
    pid: child.pid,
    url,
    port: Number(new URL(url).port),
    demoKey: find(/^ +enterprise +(pst_live_\w+) /m),
    startedMs,
    stop,
    async countRedisOutages() {
      const metrics = await (await fetch(`${find(/"adminUrl":"([^"]+)".*"msg":"ready"/)}/metrics`)).text()
      return Number(/^petstore_redis_changes_total\{to="down"\} (\d+)$/m.exec(metrics)?.[1] ?? 0)
    },
  }
}

function toSettings({ redisUrl, mongodbUrl }) {
  const shared = { MONGODB_URL: mongodbUrl, REDIS_URL: redisUrl, CURSOR_SECRET: 'a secret of at least 32 bytes for npm run bench' }
  return {
    PORT: '0',
    ADMIN_PORT: '0',
    TRUSTED_PROXY_HOPS: '0',
    PLANS_FILE: toPath('plans.json'),
    ...(mongodbUrl === undefined ? { STORAGE: 'memory' } : shared),
  }
}

function toPeerSettings(storage) {
  return { PEER_OPTIONS: JSON.stringify(storage) }
}

/** A process that sends load. See load-generator.mjs for its messages. */
export function startLoadGenerator() {
  const child = fork(toPath('load-generator.mjs'))
  const stop = cleanUpAtEnd(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  return {
    stop,
    async generate(load) {
      child.send(load)
      const exit = exited.then(() => [{ error: 'The load generator ended' }])
      const [{ measured, error }] = await Promise.race([once(child, 'message'), exit])
      if (error) throw new Error(error)
      return measured
    },
  }
}

/** User and system time of a process so far, in µs, accurate to 10 ms. Linux only. */
export function readCpuMicros(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  const TICK_MICROS = 10_000
  return (Number(fields[11]) + Number(fields[12])) * TICK_MICROS
}

/** Resident memory of a process, in megabytes of 10^6 bytes. Linux only. */
export function readResidentMb(pid) {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return (Number(kib) * 1_024) / 1e6
}
