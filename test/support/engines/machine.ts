import { spawn } from 'node:child_process'
import { appendFileSync, closeSync, existsSync, mkdtempSync, openSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../until.js'
import { announced } from './announced.js'
import { findDocker } from './docker.js'
import type { EngineSettings } from './engine-settings.js'
import { engineSettings } from './engine-settings.js'
import { findProgram, searchPath } from './find-program.js'
import type { Script } from './home-made-image.js'
import { SCRIPTS } from './home-made-image.js'
import { EngineFailed, firstOf, NoEngine } from './no-engine.js'
import { once } from './once.js'
import { isRemoved, removeAtTheEnd } from './remnants.js'

const DOCKERD_STARTS_WITHIN_MS = 60_000
const OTHER_DOCKERD_STARTS_WITHIN_MS = 10_000
const LOG_LINES = 20

export interface Machine {
  readonly isRoot: boolean
  readonly isDebian: boolean
}

/** Why a test run changes nothing on its machine; undefined where it may. */
export function whyNoSetUp({ foundOnly }: Pick<EngineSettings, 'foundOnly'>, machine: Machine = thisMachine()): string | undefined {
  if (foundOnly) return 'ENGINES=found-only switches setting up off'
  if (!machine.isDebian) return 'only Debian machines are set up by the test run'
  if (!machine.isRoot) return 'only root can set it up'
  return undefined
}

/** Debian's packages for what is missing. */
export function missingPackages(has: (program: string) => boolean, dockerAnswers: boolean): string[] {
  const packageOf = { dockerd: 'docker.io', debootstrap: 'debootstrap', 'redis-server': 'redis-server', curl: 'curl' }
  return Object.entries(packageOf)
    .filter(([program]) => !has(program) && !(program === 'dockerd' && dockerAnswers))
    .map(([, name]) => name)
}

/** Installs the programs that engines are started and made with, and those that tests run. Each call has the same outcome. */
export const setUpPackages = once(async () => {
  mayBeSetUp()
  const has = (program: string) => findProgram(program) !== undefined
  await install(missingPackages(has, await dockerAnswers()))
  // Docker's client is a package of its own since Debian 13, and in docker.io before.
  if (!has('docker')) await install(['docker-cli']).catch(() => install(['docker.io']))
})

const setUpDocker = once(async () => {
  mayBeSetUp()
  const dockerHost = process.env['DOCKER_HOST']
  if (dockerHost !== undefined) throw setUpFailed(`No Docker answers at DOCKER_HOST, which is ${dockerHost}`)
  await setUpPackages()
  if (!(await dockerAnswers())) await announced('starting dockerd, which stays for the next run', '3 s', startDockerd)
  return findDocker()
})

/** A Docker that answers. Each call has the same outcome. */
export const findOrSetUpDocker = once(async () => firstOf([findDocker, setUpDocker]))

export async function makeImage(script: Script, image: string, usually: string): Promise<void> {
  await setUpPackages()
  await announced(`making the image ${image}, which stays for the next run`, usually, () =>
    // Tests that measure time may be running meanwhile.
    run('nice', ['-n', '10', 'bash', join(SCRIPTS, script), image], { name: script, endsWithTheRun: true }),
  )
}

/** Throws `NoEngine` where a test run changes nothing; where it may, what goes wrong from there on is `EngineFailed`. */
function mayBeSetUp(): void {
  const why = whyNoSetUp(engineSettings())
  if (why !== undefined) throw new NoEngine([why])
}

function thisMachine(): Machine {
  return { isRoot: process.getuid?.() === 0, isDebian: existsSync('/etc/debian_version') && findProgram('apt-get') !== undefined }
}

/** Installs the browser of the docs page's tests. */
export const setUpChromium = once(async () => {
  mayBeSetUp()
  await install(['chromium'])
})

async function install(packages: readonly string[]): Promise<void> {
  if (packages.length === 0) return
  const aptGet = (...args: string[]) =>
    run('apt-get', ['-o', 'DPkg::Lock::Timeout=600', '-q', '-y', ...args], { name: 'apt-get', endsWithTheRun: false })
  await announced(`installing ${packages.join(', ')}`, 'half a minute', async () => {
    try {
      await aptGet('update')
    } catch (error) {
      // One of several sources that fails need not be the one of these packages.
      console.error(String(error))
    }
    await aptGet('install', '--no-install-recommends', ...packages)
  })
}

/** In the background and with no tie to this run: neither its signals nor its output, for whose end a CI may wait. */
async function startDockerd(): Promise<void> {
  let endedMs = Infinity
  if (existsSync('/run/systemd/system')) {
    await run('systemctl', ['start', 'docker'], { name: 'dockerd', endsWithTheRun: false })
  } else {
    const log = logFile('dockerd')
    const dockerd = spawn('dockerd', [], { detached: true, cwd: '/', env: environment(), stdio: ['ignore', log.fd, log.fd] })
    dockerd.once('error', (error) => appendFileSync(log.path, String(error)))
    dockerd.once('close', () => {
      endedMs = performance.now()
    })
    dockerd.unref()
    closeSync(log.fd)
  }
  const answers = async () => {
    // One that ends at once may have found another one starting.
    if (performance.now() - endedMs > OTHER_DOCKERD_STARTS_WITHIN_MS) throw new Error('dockerd has ended')
    return dockerAnswers()
  }
  try {
    await until('dockerd answers', answers, DOCKERD_STARTS_WITHIN_MS)
  } catch (error) {
    throw setUpFailed(`${String(error)}; the end of ${logPath('dockerd')}:\n${endOfLog('dockerd')}`, { cause: error })
  }
}

async function dockerAnswers(): Promise<boolean> {
  return findDocker().then(
    () => true,
    () => false,
  )
}

interface Running {
  /** Its log is named after it. */
  readonly name: string
  /** Half an installation would be worse than one that goes on without us. */
  readonly endsWithTheRun: boolean
}

async function run(program: string, args: readonly string[], { name, endsWithTheRun }: Running): Promise<void> {
  const log = logFile(name)
  const child = spawn(program, args, { detached: true, env: environment(), stdio: ['ignore', log.fd, log.fd] })
  closeSync(log.fd)
  if (endsWithTheRun && child.pid !== undefined) removeAtTheEnd('pids', -child.pid)
  const exitCode = await new Promise<number | string | null>((resolve) => {
    child.once('error', (error) => resolve(String(error)))
    child.once('exit', (code, signal) => resolve(signal ?? code))
  })
  if (child.pid !== undefined) isRemoved('pids', -child.pid)
  const command = [program, ...args].join(' ')
  if (exitCode !== 0) throw setUpFailed(`${command} ended with ${exitCode}; the end of ${log.path}:\n${endOfLog(name)}`)
}

function setUpFailed(reason: string, options?: ErrorOptions): EngineFailed {
  return new EngineFailed(`${reason}\nWhere this machine cannot be set up, ENGINES=found-only skips the tests that need it to be.`, options)
}

function environment(): NodeJS.ProcessEnv {
  return { ...process.env, PATH: searchPath(), DEBIAN_FRONTEND: 'noninteractive' }
}

let logFolder: string | undefined

function logPath(name: string): string {
  logFolder ??= mkdtempSync(join(tmpdir(), 'petstore-engines-'))
  return join(logFolder, `${name}.log`)
}

function logFile(name: string): { readonly path: string; readonly fd: number } {
  const path = logPath(name)
  return { path, fd: openSync(path, 'a') }
}

function endOfLog(name: string): string {
  return readFileSync(logPath(name), 'utf8').trimEnd().split('\n').slice(-LOG_LINES).join('\n')
}
