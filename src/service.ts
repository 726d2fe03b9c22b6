import type { Server } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { formatStartUpNotice } from './adapters/cli/start-up-notice.js'
import { announceClose, drain, listen, makeServer } from './adapters/http/server/server.js'
import { LogOutput } from './adapters/node/log-output.js'
import type { Config } from './config.js'
import { OperatorError, StoreUnavailable } from './core/errors.js'
import { PLAN_NAMES } from './core/plan.js'
import type { IssuedApiKey } from './core/use-cases/issue-api-key.js'
import { EXIT_CODES, toOperatorMessage } from './exit.js'
import { readVersion } from './version.js'
import { makeContainer } from './wiring/container.js'
import { ServiceParts } from './wiring/parts.js'

/** The limits of the demo key if its plan has none (enterprise). */
const DEMO_LIMITS = { minute: 5_000, day: 1_000_000 }

const PREPARE_RETRY_MS = 1_000

/**
 * How long a process waits for MongoDB and Redis before it listens anyway, so that `/livez` responds. Load balancers without health checks
 * send requests as soon as it listens. Until it has reached Redis, it does not know what the other replicas have granted.
 */
const LISTEN_TIMEOUT_MS = 3_000

/** Serves until a signal or an uncaught exception ends the process. Throws `OperatorError` if it cannot listen. */
export async function serve(config: Config): Promise<void> {
  const output = new LogOutput()
  process.on('exit', () => output.end())
  const container = await makeContainer(config, output)
  const parts = container.get(ServiceParts)
  const { log, metrics, health } = parts
  const api = makeServer(parts.api, {
    log,
    ...(config.publicUrl === undefined ? {} : { publicUrl: config.publicUrl }),
    maxConnections: config.maxConnections,
    onClientGone: () => metrics.clientsGone.inc(),
    onConnectionDropped: () => metrics.droppedConnections.inc(),
    onUnreadableRequest: (code) => metrics.countUnreadable(code),
  })
  const admin = makeServer(parts.adminApi, { log })
  metrics.collectProcess({
    version: readVersion(),
    isReady: () => health.isReady,
    countConnections: promisify(api.getConnections.bind(api)),
    countDiscardedLogLines: () => output.discardedLines,
  })

  const adminUrl = await listenOrExplain(admin, config.adminHost, config.adminPort, 'ADMIN_')
  stopOnSignals(parts, config, [api, admin])
  const demoKeys = config.distributed ? [] : await issueDemoKeys(parts)
  parts.demoSecrets.push(...demoKeys.map(({ secret }) => secret))
  const prepared = prepareBackingServices(parts)
  await Promise.race([prepared, delay(LISTEN_TIMEOUT_MS, undefined, { ref: false })])
  if (health.isDraining) return
  const apiUrl = await listenOrExplain(api, config.host, config.port, '')
  if (config.distributed) log.info({ apiUrl, adminUrl }, 'listening')
  await prepared
  if (!health.startAccepting()) return
  log.info({ apiUrl, adminUrl, mode: config.distributed ? 'distributed' : 'embedded' }, 'ready')
  // Nothing else contains the demo keys. Secrets must not be in the log.
  const mustNotify = demoKeys.length > 0 || process.stderr.isTTY
  if (mustNotify) process.stderr.write(formatStartUpNotice({ apiUrl, adminUrl, hasDocs: config.hasDocs, plans: config.plans, demoKeys }))
}

/** Retries until the backing services are available. Until then, the process listens, but is not ready. */
async function prepareBackingServices({ backingServices, log }: ServiceParts): Promise<void> {
  for (;;) {
    try {
      await Promise.all(backingServices.map((service) => service.prepare('serve')))
      return
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      log.warn({ reason: toOperatorMessage(error) }, 'waiting for MongoDB')
      await delay(PREPARE_RETRY_MS)
    }
  }
}

async function issueDemoKeys({ apiKeyAdmin: { issue, plans } }: ServiceParts): Promise<IssuedApiKey[]> {
  return Promise.all(
    PLAN_NAMES.map((plan) =>
      issue({ owner: 'demo', plan, ...(plans.plans[plan].limits ? {} : { limits: DEMO_LIMITS }) }, 'petstore serve'),
    ),
  )
}

async function listenOrExplain(server: Server, host: string, port: number, prefix: string): Promise<string> {
  try {
    return await listen(server, host, port)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new OperatorError(
      `Cannot listen on ${host}:${port} (${code}): set ${prefix}HOST to an IP address of this machine and ${prefix}PORT to a free port, or to 0 for any`,
    )
  }
}

/** The maximum duration of a shutdown after an uncaught exception. */
const CRASH_TIMEOUT_MS = 5_000

/**
 * How long a load balancer may still send a request on a connection that it keeps open. If it closes idle connections sooner, as with
 * config/nginx.conf, the service closes none that the load balancer could be using.
 */
const IDLE_GRACE_MS = 3_000

interface ShutdownOptions {
  readonly drainDelayMs: number
  readonly idleGraceMs: number
  readonly timeoutMs: number
}

/** The first signal starts a graceful shutdown. A second signal exits at once. An uncaught exception shuts down gracefully but quickly, with exit code 1. */
function stopOnSignals(parts: ServiceParts, { drainDelayMs, shutdownTimeoutMs }: Config, servers: Servers): void {
  const { log } = parts
  /** Set once the shutdown has begun. */
  let exitCode: number | undefined

  const shutDown = async (reason: string, options: ShutdownOptions) => {
    log.info({ reason }, 'stopping')
    await stop(parts, options, servers).catch((err: unknown) => {
      exitCode = EXIT_CODES.failure
      log.error({ err }, 'shutdown failed')
    })
    log.info('stopped')
    process.exit(exitCode)
  }
  const onSignal = (signal: NodeJS.Signals) => {
    if (exitCode !== undefined) process.exit(EXIT_CODES.failure)
    exitCode = EXIT_CODES.success
    void shutDown(signal, { drainDelayMs, idleGraceMs: IDLE_GRACE_MS, timeoutMs: shutdownTimeoutMs })
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  process.on('uncaughtException', (err) => {
    log.fatal({ err }, 'uncaught exception')
    // A further exception must not interrupt the requests that the shutdown waits for.
    const isStopping = exitCode !== undefined
    exitCode = EXIT_CODES.failure
    const timeoutMs = Math.min(CRASH_TIMEOUT_MS, shutdownTimeoutMs)
    if (!isStopping) void shutDown('uncaught exception', { drainDelayMs: 0, idleGraceMs: 0, timeoutMs })
  })
}

type Servers = readonly [api: Server, admin: Server]

/** The parts that a shutdown stops. */
type PartsToStop = Pick<ServiceParts, 'log' | 'health' | 'backingServices'> & Partial<Pick<ServiceParts, 'tracing'>>

/**
 * Shuts down in this order: fails `/readyz`, waits until load balancers have noticed, drains the API server, closes the storage connections,
 * exports the last spans, and drains the admin server last, because it reports on the shutdown. Takes at most `timeoutMs`. Any connection that
 * is still open closes when the process exits.
 */
export async function stop(
  parts: PartsToStop,
  { drainDelayMs, idleGraceMs, timeoutMs }: ShutdownOptions,
  [api, admin]: Servers,
): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs
  const remainingMs = () => Math.max(0, deadlineMs - performance.now())
  parts.health.stopAccepting()
  announceClose(api)
  await delay(drainDelayMs)
  await drain(api, { graceMs: Math.min(idleGraceMs, remainingMs()), timeoutMs: remainingMs() })
  await Promise.race([closeBackingServices(parts), delay(remainingMs())])
  await Promise.race([parts.tracing?.close(), delay(remainingMs())])
  await drain(admin, { graceMs: 0, timeoutMs: remainingMs() })
}

/** If this fails, no data is lost: every acknowledged write is in MongoDB, and every reported request is in Redis. */
async function closeBackingServices({ backingServices, log }: PartsToStop): Promise<void> {
  await Promise.all(backingServices.map((service) => service.close())).catch((err: unknown) =>
    log.error({ err }, 'failed to close the storage connections'),
  )
}
