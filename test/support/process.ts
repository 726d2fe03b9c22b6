import type { ChildProcessByStdio } from 'node:child_process'
import { spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { PlanName } from '../../src/core/plan.js'
import { PLAN_NAMES } from '../../src/core/plan.js'
import type { TestResponse, Sent } from './api.js'
import { send } from './api.js'
import { freePort } from './engines/free-port.js'
import type { StoredKey } from './stored-key.js'
import { issueStoredKeys } from './stored-key.js'
import { until } from './until.js'

export const PETSTORE = fileURLToPath(new URL('../../src/main.js', import.meta.url))

/** Environment variables. Of those of the test run, the process gets only PATH. */
export type Settings = Readonly<Record<string, string>>

export interface Ended {
  /** Null if a signal ended the process. */
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
}

/** `petstore serve` in a separate process. */
export interface ServiceProcess {
  readonly pid: number
  /** `http://127.0.0.1:…` */
  readonly url: string
  readonly adminUrl: string
  /** The start-up notice. Empty with MongoDB: the process prints it only on a terminal. */
  readonly notice: string
  /** The demo keys. Throws if the service has none: with MongoDB, use `issueKey`. */
  readonly keys: Readonly<Record<PlanName, string>>
  /** The standard output so far. */
  readonly output: string
  /** The JSON lines of the log so far. */
  readonly logLines: readonly string[]
  readonly ended: Promise<Ended>
  send(path: string, sent?: Sent): Promise<TestResponse>
  signal(name: NodeJS.Signals): void
  /** Closes the reading end of its output. */
  closeOutput(): void
  /** Stops reading its standard output until `resumeOutput`. */
  pauseOutput(): void
  resumeOutput(): void
  /** Resolves to the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

const running = new Set<RunningProcess>()

/** Kills all processes that are still running. For the `after` or `afterEach` of every suite that starts processes. */
export async function endProcesses(): Promise<void> {
  for (const { child } of running) child.kill('SIGKILL')
  await Promise.all([...running].map(({ ended }) => ended))
}

/** Starts the service on free ports and waits until it is ready. */
export async function startService(settings: Settings = {}): Promise<ServiceProcess> {
  // Without a notice and the log line "ready", nothing says which ports the process has chosen.
  if (settings['MONGODB_URL'] !== undefined && settings['LOG_LEVEL'] === 'warn') return startOnKnownPorts(settings)
  const service = new RunningProcess(['serve'], { PORT: '0', ADMIN_PORT: '0', ...settings })
  const { child } = service
  try {
    const isEmbedded = settings['MONGODB_URL'] === undefined
    const isReady = () => (isEmbedded ? /^ {2}curl .+\n/m.test(service.stderr) : findReady(service) !== undefined)
    await until('the service has started', () => service.hasEnded || isReady(), 20_000)
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
  if (service.hasEnded) throw new Error(`The service did not start:\n${service.stdout}${service.stderr}`)

  const notice = service.stderr
  const { apiUrl, adminUrl } = findReady(service) ?? {
    apiUrl: matchOne(notice, /^Listening on +(http\S+)\/v1$/m),
    adminUrl: matchOne(notice, /^Admin +(http\S+)\/metrics/m),
  }
  return makeHandle(service, { url: apiUrl, adminUrl, notice })
}

async function startOnKnownPorts(settings: Settings): Promise<ServiceProcess> {
  const ports = { api: Number(settings['PORT'] ?? (await freePort())), admin: Number(settings['ADMIN_PORT'] ?? (await freePort())) }
  const service = await startServiceUnready(ports, settings)
  await until('the service is ready', async () => (await service.send('/readyz')).status === 200, 20_000)
  return service
}

function findReady({ stdout }: RunningProcess): { readonly apiUrl: string; readonly adminUrl: string } | undefined {
  const line = stdout.split('\n').find((text) => text.endsWith('"msg":"ready"}'))
  return line === undefined ? undefined : (JSON.parse(line) as { apiUrl: string; adminUrl: string })
}

/** Starts the service on these ports and waits until it is alive. Its dependencies may be unavailable. */
export async function startServiceUnready(
  ports: { readonly api: number; readonly admin: number },
  settings: Settings,
): Promise<ServiceProcess> {
  const service = new RunningProcess(['serve'], { PORT: `${ports.api}`, ADMIN_PORT: `${ports.admin}`, ...settings })
  const handle = makeHandle(service, { url: `http://127.0.0.1:${ports.api}`, adminUrl: `http://127.0.0.1:${ports.admin}`, notice: '' })
  const isAlive = async () => (await handle.send('/livez').catch(() => undefined))?.status === 200
  await until('the service is alive', async () => service.hasEnded || (await isAlive()), 20_000)
  if (service.hasEnded) throw new Error(`The service did not start:\n${service.stdout}${service.stderr}`)
  return handle
}

function makeHandle(service: RunningProcess, from: Pick<ServiceProcess, 'url' | 'adminUrl' | 'notice'>): ServiceProcess {
  const { child } = service
  return {
    ...from,
    get keys() {
      const findKey = (plan: PlanName) => matchOne(from.notice, new RegExp(`^ +${plan} +(pst_live_\\w+) `, 'm'))
      return Object.fromEntries(PLAN_NAMES.map((plan) => [plan, findKey(plan)])) as Record<PlanName, string>
    },
    get output() {
      return service.stdout
    },
    get logLines() {
      return filterLines(service.stdout, isLog)
    },
    ended: service.ended,
    get pid() {
      if (child.pid === undefined) throw new Error('The process was not started')
      return child.pid
    },
    send: (path, sent) => send(from.url, path, sent),
    signal: (name) => void child.kill(name),
    closeOutput: () => child.stdout.destroy(),
    pauseOutput: () => void child.stdout.pause(),
    resumeOutput: () => void child.stdout.resume(),
    async stop(signal = 'SIGTERM') {
      child.kill(signal)
      return (await service.ended).exitCode
    },
  }
}

/** Runs a command to its end. */
export async function runPetstore(args: readonly string[], settings: Settings = {}): Promise<Ended> {
  return new RunningProcess(args, settings).ended
}

/** Runs a command with `--json` and parses its output. Throws if it fails. */
export async function runPetstoreJson<Printed>(args: readonly string[], settings: Settings): Promise<Printed> {
  const { exitCode, stdout, stderr } = await runPetstore([...args, '--json'], settings)
  if (exitCode !== 0) throw new Error(`petstore ${args.join(' ')} ended with ${exitCode}:\n${stdout}${stderr}`)
  return JSON.parse(stdout) as Printed
}

/** Issues a key in the MongoDB of the settings, with more requests than any test sends. */
export async function issueKey({ MONGODB_URL = '' }: Settings): Promise<StoredKey> {
  const [issued] = await issueStoredKeys(MONGODB_URL, [
    { owner: 'tests', plan: 'enterprise', limits: { minute: 1_000_000, day: 1_000_000 } },
  ])
  if (!issued) throw new Error('No key was issued')
  return issued
}

let isHooked = false

/** Kills all processes even if a signal ends the test run. */
function endProcessesWithTestRun(): void {
  if (isHooked) return
  isHooked = true
  process.on('exit', () => {
    for (const { child } of running) child.kill('SIGKILL')
  })
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1))
}

class RunningProcess {
  readonly child: ChildProcessByStdio<null, Readable, Readable>
  readonly ended: Promise<Ended>
  stdout = ''
  stderr = ''
  hasEnded = false

  constructor(args: readonly string[], settings: Settings) {
    const env = { PATH: process.env['PATH'] ?? '', ...settings }
    this.child = spawn(process.execPath, [PETSTORE, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    endProcessesWithTestRun()
    running.add(this)

    this.child.stdout.setEncoding('utf8').on('data', (text: string) => (this.stdout += text))
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => (this.stderr += text))
    this.ended = new Promise((resolve, reject) => {
      this.child.on('error', reject)
      this.child.on('close', (exitCode) => {
        this.hasEnded = true
        running.delete(this)
        resolve({ exitCode, stdout: this.stdout, stderr: this.stderr })
      })
    })
  }
}

function isLog(line: string): boolean {
  return line.startsWith('{')
}

function filterLines(text: string, isWanted: (line: string) => boolean): string[] {
  return text.split('\n').slice(0, -1).filter(isWanted)
}

function matchOne(notice: string, pattern: RegExp): string {
  const [, text] = pattern.exec(notice) ?? []
  if (text === undefined) throw new Error(`${pattern} is not in the start-up notice:\n${notice}`)
  return text
}
