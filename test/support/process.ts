import type { ChildProcessByStdio } from 'node:child_process'
import { spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { PlanName } from '../../src/core/plan.js'
import { PLAN_NAMES } from '../../src/core/plan.js'
import type { TestResponse, Sent } from './api.js'
import { send } from './api.js'
import type { StoredKey } from './stored-key.js'
import { issueStoredKeys } from './stored-key.js'
import { until } from './until.js'

/** Beside this file wherever it was compiled to. */
export const PETSTORE = fileURLToPath(new URL('../../src/main.js', import.meta.url))

/** Environment variables; nothing but PATH is taken over from the test run. */
export type Settings = Readonly<Record<string, string>>

export interface Ended {
  /** Null where a signal ended the process. */
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
}

/** `petstore serve` in a process of its own, with whatever it has printed so far. */
export interface ServiceProcess {
  readonly pid: number
  /** `http://127.0.0.1:…` */
  readonly url: string
  readonly adminUrl: string
  /** What it said at its start, to people. */
  readonly notice: string
  /** Of the demo. Throws where the service has none: with MongoDB keys are issued, by `issueKey`. */
  readonly keys: Readonly<Record<PlanName, string>>
  /** What it has logged so far, a JSON line each. */
  readonly logLines: readonly string[]
  readonly ended: Promise<Ended>
  send(path: string, sent?: Sent): Promise<TestResponse>
  signal(name: NodeJS.Signals): void
  /** Stops reading what it prints, as a reader that was killed does. */
  closeOutput(): void
  /** Resolves to the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

const running = new Set<RunningProcess>()

/** For `after` or `afterEach` wherever processes are started: whatever a test left behind ends here. */
export async function endProcesses(): Promise<void> {
  for (const { child } of running) child.kill('SIGKILL')
  await Promise.all([...running].map(({ ended }) => ended))
}

/** Starts the service on ports of its own and waits until it has said where it is. */
export async function startService(settings: Settings = {}): Promise<ServiceProcess> {
  const service = new RunningProcess(['serve'], { PORT: '0', ADMIN_PORT: '0', ...settings })
  const { child } = service
  try {
    await until('the service says that it has started', () => service.hasEnded || /^ {2}curl .+\n/m.test(service.stdout), 9_000)
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
  if (service.hasEnded) throw new Error(`The service did not start:\n${service.stdout}${service.stderr}`)

  const notice = linesOf(service.stdout, (line) => !isLog(line)).join('\n')
  return handleOf(service, {
    url: found(notice, /^Listening on +(http\S+)\/v1$/m),
    adminUrl: found(notice, /^Admin +(http\S+)\/metrics/m),
    notice,
  })
}

/** Starts the service on these ports and waits only until it is alive: what it leans on may be away. */
export async function startServiceUnready(
  ports: { readonly api: number; readonly admin: number },
  settings: Settings,
): Promise<ServiceProcess> {
  const service = new RunningProcess(['serve'], { PORT: `${ports.api}`, ADMIN_PORT: `${ports.admin}`, ...settings })
  const handle = handleOf(service, { url: `http://127.0.0.1:${ports.api}`, adminUrl: `http://127.0.0.1:${ports.admin}`, notice: '' })
  const isAlive = async () => (await handle.send('/livez').catch(() => undefined))?.status === 200
  await until('the service is alive', async () => service.hasEnded || (await isAlive()), 9_000)
  if (service.hasEnded) throw new Error(`The service did not start:\n${service.stdout}${service.stderr}`)
  return handle
}

function handleOf(service: RunningProcess, said: Pick<ServiceProcess, 'url' | 'adminUrl' | 'notice'>): ServiceProcess {
  const { child } = service
  return {
    ...said,
    get keys() {
      const keyOf = (plan: PlanName) => found(said.notice, new RegExp(`^ +${plan} +(pst_live_\\w+) `, 'm'))
      return Object.fromEntries(PLAN_NAMES.map((plan) => [plan, keyOf(plan)])) as Record<PlanName, string>
    },
    get logLines() {
      return linesOf(service.stdout, isLog)
    },
    ended: service.ended,
    get pid() {
      if (child.pid === undefined) throw new Error('The process was not started')
      return child.pid
    },
    send: (path, sent) => send(said.url, path, sent),
    signal: (name) => void child.kill(name),
    closeOutput: () => child.stdout.destroy(),
    async stop(signal = 'SIGTERM') {
      child.kill(signal)
      return (await service.ended).exitCode
    },
  }
}

/** Runs a command that ends by itself. */
export async function runPetstore(args: readonly string[], settings: Settings = {}): Promise<Ended> {
  return new RunningProcess(args, settings).ended
}

/** What a command that must succeed prints with `--json`. */
export async function runPetstoreJson<Printed>(args: readonly string[], settings: Settings): Promise<Printed> {
  const { exitCode, stdout, stderr } = await runPetstore([...args, '--json'], settings)
  if (exitCode !== 0) throw new Error(`petstore ${args.join(' ')} ended with ${exitCode}:\n${stdout}${stderr}`)
  return JSON.parse(stdout) as Printed
}

/** On the MongoDB of the settings, with more requests than any test sends. */
export async function issueKey({ MONGODB_URL = '' }: Settings): Promise<StoredKey> {
  const [issued] = await issueStoredKeys(MONGODB_URL, [
    { owner: 'tests', plan: 'enterprise', limits: { minute: 1_000_000, day: 1_000_000 } },
  ])
  if (!issued) throw new Error('No key was issued')
  return issued
}

let endsWithTheTestRun = false

/** A test run that is ended by a signal, in the middle of a test, leaves no process behind either. */
function endWithTheTestRun(): void {
  if (endsWithTheTestRun) return
  endsWithTheTestRun = true
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
    endWithTheTestRun()
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

function linesOf(text: string, wanted: (line: string) => boolean): string[] {
  return text.split('\n').slice(0, -1).filter(wanted)
}

function found(notice: string, pattern: RegExp): string {
  const [, text] = pattern.exec(notice) ?? []
  if (text === undefined) throw new Error(`${pattern} is not in the start-up notice:\n${notice}`)
  return text
}
