import type { ChildProcess } from 'node:child_process'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../until.js'
import { announceEngine, secondsSince } from './announced.js'
import { findProgram } from './find-program.js'
import { onFreePort } from './free-port.js'
import { NoEngine } from './no-engine.js'
import type { EngineBody, StartedEngine } from './own-engine.js'
import { isGone, runningPid, stampOf } from './process-stamp.js'
import { isRemoved, removeAtTheEnd } from './remnants.js'

const FOLDER_PREFIX = 'petstore-redis-'
/** In the folder of a server: the stamps of the test run that it belongs to, and of the server. */
const RUN_FILE = 'run'
const SERVER_FILE = 'server'
const LOG_FILE = 'log'
const READY_LINE = 'Ready to accept connections'

/** Starts this machine's redis-server. Throws `NoEngine` where it has none. */
export async function startRedisProcess(extraArgs: readonly string[] = []): Promise<StartedEngine> {
  const program = findProgram('redis-server')
  if (program === undefined) throw new NoEngine(['this machine has no redis-server'])
  removeServersOfGoneRuns()

  const beganMs = performance.now()
  const { url, body } = await onFreePort(async (port) => {
    const redis = new RedisProcess(program, [...redisArguments(port), '--bind', '127.0.0.1', ...extraArgs])
    try {
      await redis.startAgain()
    } catch (error) {
      await redis.remove()
      throw error
    }
    return { url: `redis://127.0.0.1:${port}`, body: redis }
  })
  const how = `redis-server ${versionOf(program)} of this machine`
  announceEngine('Redis', how, secondsSince(beganMs))
  return { url, how, body }
}

/** Keeps nothing on disk unless more arguments say otherwise. */
export function redisArguments(port: number): string[] {
  return ['--port', `${port}`, '--save', '', '--appendonly', 'no', '--protected-mode', 'no']
}

class RedisProcess implements EngineBody {
  private readonly folder = mkdtempSync(join(tmpdir(), FOLDER_PREFIX))
  private child: ChildProcess | undefined

  constructor(
    private readonly program: string,
    private readonly args: readonly string[],
  ) {
    removeAtTheEnd('folders', this.folder)
    writeFileSync(join(this.folder, RUN_FILE), stampOf(process.pid) ?? '')
  }

  async startAgain(): Promise<void> {
    // Nothing of its output hangs on the test run, and its log says what kept it from starting.
    const log = openSync(join(this.folder, LOG_FILE), 'w')
    const child = spawn(this.program, ['--dir', this.folder, ...this.args], { stdio: ['ignore', log, log] })
    closeSync(log)
    child.unref()
    const pid = await pidOf(child)
    removeAtTheEnd('pids', pid)
    child.once('exit', () => isRemoved('pids', pid))
    this.child = child
    writeFileSync(join(this.folder, SERVER_FILE), stampOf(pid) ?? '')

    await until('redis-server is ready', () => hasEnded(child) || this.log().includes(READY_LINE), 60_000)
    if (hasEnded(child)) throw new Error(`redis-server ended at once:\n${this.log()}`)
  }

  async freeze(): Promise<void> {
    this.child?.kill('SIGSTOP')
  }

  async thaw(): Promise<void> {
    this.child?.kill('SIGCONT')
  }

  async kill(): Promise<void> {
    const { child } = this
    if (child === undefined || hasEnded(child)) return
    const exit = once(child, 'exit')
    child.ref()
    child.kill('SIGKILL')
    await exit
  }

  async remove(): Promise<void> {
    await this.kill()
    rmSync(this.folder, { recursive: true, force: true })
    isRemoved('folders', this.folder)
  }

  private log(): string {
    return readFileSync(join(this.folder, LOG_FILE), 'utf8')
  }
}

async function pidOf(child: ChildProcess): Promise<number> {
  await once(child, 'spawn')
  if (child.pid === undefined) throw new Error('A process that was started has no pid')
  return child.pid
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

function versionOf(program: string): string {
  const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' })
  return /v=(\S+)/.exec(stdout)?.[1] ?? 'of unknown version'
}

/** What test runs left behind that were ended in a way that let them remove nothing. */
function removeServersOfGoneRuns(): void {
  for (const name of readdirSync(tmpdir())) {
    const folder = join(tmpdir(), name)
    if (!name.startsWith(FOLDER_PREFIX) || !isOurs(folder) || !isGone(stampIn(folder, RUN_FILE))) continue
    const pid = runningPid(stampIn(folder, SERVER_FILE))
    if (pid !== undefined) process.kill(pid, 'SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Somebody else's folder could name any process. */
function isOurs(folder: string): boolean {
  return statSync(folder).uid === process.getuid?.()
}

function stampIn(folder: string, file: string): string {
  const path = join(folder, file)
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}
