import type { RequestListener, Server } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { startUpNotice } from './adapters/cli/start-up-notice.js'
import type { Health } from './adapters/http/admin/health.js'
import type { Metrics } from './adapters/http/admin/metrics.js'
import { announceClose, drain, listen, makeServer } from './adapters/http/server/server.js'
import type { Config } from './config.js'
import type { Container, Storage } from './container.js'
import { makeContainer, TOKENS } from './container.js'
import { OperatorError, StoreUnavailable } from './core/errors.js'
import { PLAN_NAMES } from './core/plan.js'
import type { IssueApiKey, IssuedApiKey } from './core/use-cases/issue-api-key.js'
import { EXIT, toSentence } from './exit.js'

/** The demo key of a plan that has no limits of its own. */
const DEMO_LIMITS = { minute: 5_000, day: 1_000_000 }

const STORAGE_RETRY_MS = 1_000

/** Serves until a signal or an uncaught exception ends the process. Throws `OperatorError` if it cannot listen. */
export async function serve(config: Config): Promise<void> {
  const container = makeContainer(config)
  const log = container.get<Logger>(TOKENS.log)
  const metrics = container.get<Metrics>(TOKENS.metrics)
  const api = makeServer(container.get<RequestListener>(TOKENS.api), {
    log,
    ...(config.publicUrl === undefined ? {} : { publicUrl: config.publicUrl }),
    maxConnections: config.maxConnections,
    onClientGone: () => metrics.countClientGone(),
    onConnectionDropped: () => metrics.countDroppedConnection(),
  })
  const admin = makeServer(container.get<RequestListener>(TOKENS.admin), { log })
  metrics.collectProcessMetrics()

  const adminUrl = await listenOrExplain(admin, config.adminHost, config.adminPort, 'ADMIN_')
  const apiUrl = await listenOrExplain(api, config.host, config.port, '')
  stopOnSignals(container, config, [api, admin])
  const demoKeys = await issueDemoKeys(container, config)
  if (config.distributed) log.info({ apiUrl, adminUrl }, 'listening, and preparing the storage')
  await prepareStorage(container)
  if (!container.get<Health>(TOKENS.health).startAccepting()) return
  process.stdout.write(startUpNotice({ apiUrl, adminUrl, docs: config.docs, plans: config.plans, demoKeys }))
}

/** Until the storage is available the process serves what it can, but is not ready. */
async function prepareStorage(container: Container): Promise<void> {
  const storage = container.get<Storage>(TOKENS.storage)
  const log = container.get<Logger>(TOKENS.log)
  for (;;) {
    try {
      return await storage.prepare()
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      log.warn({ reason: toSentence(error) }, 'waiting for the storage')
      await delay(STORAGE_RETRY_MS)
    }
  }
}

async function issueDemoKeys(container: Container, { plans, distributed }: Config): Promise<IssuedApiKey[]> {
  if (distributed) return []
  const issueApiKey = container.get<IssueApiKey>(TOKENS.issueApiKey)
  return Promise.all(
    PLAN_NAMES.map((plan) => issueApiKey({ owner: 'demo', plan, ...(plans.plans[plan].limits ? {} : { limits: DEMO_LIMITS }) })),
  )
}

async function listenOrExplain(server: Server, host: string, port: number, prefix: string): Promise<string> {
  try {
    return await listen(server, host, port)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new OperatorError(
      `Cannot listen on ${host}:${port} (${code}): set ${prefix}HOST to an address of this machine and ${prefix}PORT to a free port, or to 0 for any`,
    )
  }
}

/** The longest that a shutdown takes after an uncaught exception. */
const CRASH_TIMEOUT_MS = 5_000

/** How long a load balancer may still send a request on a connection that it believes to be open. */
const IDLE_GRACE_MS = 1_000

interface ShutdownOptions {
  readonly drainDelayMs: number
  readonly idleGraceMs: number
  readonly timeoutMs: number
}

/** The first signal shuts down gracefully, the second exits at once. An uncaught exception shuts down gracefully but quickly, with exit code 1. */
function stopOnSignals(container: Container, { drainDelayMs, shutdownTimeoutMs }: Config, servers: Servers): void {
  const log = container.get<Logger>(TOKENS.log)
  /** Set once the shutdown has begun. */
  let exitCode: number | undefined

  const shutDown = async (reason: string, options: ShutdownOptions) => {
    log.info({ reason }, 'stopping')
    await stop(container, options, servers).catch((err: unknown) => {
      exitCode = EXIT.failed
      log.error({ err }, 'the shutdown failed')
    })
    log.info('stopped')
    process.exit(exitCode)
  }
  const onSignal = (signal: NodeJS.Signals) => {
    if (exitCode !== undefined) process.exit(EXIT.failed)
    exitCode = EXIT.done
    void shutDown(signal, { drainDelayMs, idleGraceMs: IDLE_GRACE_MS, timeoutMs: shutdownTimeoutMs })
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  process.on('uncaughtException', (err) => {
    log.fatal({ err }, 'uncaught')
    // One more exception must not cut the requests that the shutdown waits for.
    const isStopping = exitCode !== undefined
    exitCode = EXIT.failed
    const timeoutMs = Math.min(CRASH_TIMEOUT_MS, shutdownTimeoutMs)
    if (!isStopping) void shutDown('uncaught exception', { drainDelayMs: 0, idleGraceMs: 0, timeoutMs })
  })
}

type Servers = readonly [api: Server, admin: Server]

/**
 * The shutdown order: readiness, the delay in which load balancers notice, the API, the storage, and last the admin port, which reports on the
 * shutdown. Takes at most `timeoutMs`. What is still open then closes when the process exits.
 */
async function stop(container: Container, { drainDelayMs, idleGraceMs, timeoutMs }: ShutdownOptions, [api, admin]: Servers): Promise<void> {
  const endMs = performance.now() + timeoutMs
  const leftMs = () => Math.max(0, endMs - performance.now())
  container.get<Health>(TOKENS.health).stopAccepting()
  announceClose(api)
  await delay(drainDelayMs)
  await drain(api, { graceMs: Math.min(idleGraceMs, leftMs()), timeoutMs: leftMs() })
  await Promise.race([closeStorage(container), delay(leftMs())])
  await drain(admin, { graceMs: 0, timeoutMs: leftMs() })
}

/** If it fails, no data is lost: every acknowledged write is in MongoDB, and every reported request in Redis. */
async function closeStorage(container: Container): Promise<void> {
  const log = container.get<Logger>(TOKENS.log)
  await container
    .get<Storage>(TOKENS.storage)
    .close()
    .catch((err: unknown) => log.error({ err }, 'the storage could not be closed'))
}
