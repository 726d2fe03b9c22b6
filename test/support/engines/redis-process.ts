import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../until.js'
import { cleanUpAtEnd } from './cleanup.js'
import { findProgram } from './find-program.js'
import { onFreePort } from './free-port.js'
import { killWithParent } from './kill-with-parent.js'
import { NoEngine } from './no-engine.js'
import type { EngineServer, StartedEngine } from './own-engine.js'

const START_TIMEOUT_MS = 60_000

/** Persists nothing unless `extraArgs` say otherwise. Throws `NoEngine` if redis-server is not installed. */
export async function startRedisProcess(extraArgs: readonly string[] = []): Promise<StartedEngine> {
  return onFreePort(async (port) => {
    const args = [...redisArguments(port), '--bind', '127.0.0.1', ...extraArgs]
    const server = await startRedisServer((folder) => ['--dir', folder, ...args])
    return { url: `redis://127.0.0.1:${port}`, description: 'redis-server of this machine', server }
  })
}

export function redisArguments(port: number): string[] {
  return ['--port', `${port}`, '--save', '', '--appendonly', 'no', '--protected-mode', 'no']
}

/** Starts redis-server in a new folder, which is removed with it. It is ready when its log contains `readyLine`. */
export async function startRedisServer(
  args: (folder: string) => readonly string[],
  readyLine = 'Ready to accept connections',
): Promise<EngineServer> {
  const program = findProgram('redis-server')
  if (program === undefined) throw new NoEngine('redis-server is not installed')
  const folder = mkdtempSync(join(tmpdir(), 'petstore-redis-'))
  const [command, commandArgs] = killWithParent(program, args(folder))
  const logFile = join(folder, 'log')
  let child: ChildProcess | undefined

  const isRunning = () => child !== undefined && child.exitCode === null && child.signalCode === null
  const kill = async () => {
    if (!isRunning() || !child) return
    const exit = once(child, 'exit')
    child.ref()
    child.kill('SIGKILL')
    await exit
  }
  const stop = cleanUpAtEnd(async () => {
    await kill()
    rmSync(folder, { recursive: true, force: true })
  })
  const start = async () => {
    const log = openSync(logFile, 'w')
    child = spawn(command, commandArgs, { stdio: ['ignore', log, log] })
    closeSync(log)
    child.unref()
    await once(child, 'spawn')
    const isReady = () => readFileSync(logFile, 'utf8').includes(readyLine)
    await until('redis-server is ready', () => !isRunning() || isReady(), START_TIMEOUT_MS)
    if (!isRunning()) throw new Error(`redis-server exited:\n${readFileSync(logFile, 'utf8')}`)
  }

  try {
    await start()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    freeze: async () => void child?.kill('SIGSTOP'),
    unfreeze: async () => void child?.kill('SIGCONT'),
    kill,
    start,
    stop,
  }
}
