import type { SpawnOptions, SpawnSyncOptionsWithStringEncoding } from 'node:child_process'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'

/** Beside this file wherever it was compiled to. */
const REMOVE_REMNANTS = fileURLToPath(new URL('remove-remnants.js', import.meta.url))
const REMOVAL_MS = 60_000

const remnants = {
  /** Negative where the whole process group is meant. */
  pids: new Set<number>(),
  folders: new Set<string>(),
  /** Container ids. */
  containers: new Set<string>(),
  /** URLs, with the database, of servers that are not ours to remove. */
  mongoDatabases: new Set<string>(),
  redisDatabases: new Set<string>(),
}

type Remnants = typeof remnants
type Remnant<Kind extends keyof Remnants> = Remnants[Kind] extends Set<infer What> ? What : never

/** What `remove-remnants` is told, as JSON. */
export interface RemoteRemnants {
  readonly containers: readonly string[]
  readonly mongoDatabases: readonly string[]
  readonly redisDatabases: readonly string[]
}

/**
 * Notes down something that must not outlive this test run. It is removed at the exit of the process, which is where each end
 * of a run passes: the normal one, a forced one, and those by SIGINT, SIGTERM and SIGHUP. Only SIGKILL needs the next run.
 */
export function removeAtTheEnd<Kind extends keyof Remnants>(kind: Kind, what: Remnant<Kind>): void {
  watchForTheEnd()
  setOf(kind).add(what)
}

/** It is gone already. */
export function isRemoved<Kind extends keyof Remnants>(kind: Kind, what: Remnant<Kind>): void {
  setOf(kind).delete(what)
}

function setOf<Kind extends keyof Remnants>(kind: Kind): Set<Remnant<Kind>> {
  return remnants[kind] as unknown as Set<Remnant<Kind>>
}

let watches = false

function watchForTheEnd(): void {
  if (watches) return
  watches = true
  process.on('exit', removeRemnants)
  // Not once: with no listener left, a second Ctrl-C would end the process in the middle of the removal.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(128 + constants.signals[signal]))
  endWithMocha()
}

/** Mocha runs the tests in a child of its own when it was given options for Node, and tells that child of Ctrl-C alone. */
function endWithMocha(): void {
  const parent = process.ppid
  if (!/^[^\0]*node[^\0]*\0.*mocha/.test(commandOf(parent))) return
  const watch = () => {
    if (process.ppid !== parent) process.exit(128 + constants.signals.SIGTERM)
  }
  setInterval(watch, 250).unref()
}

function commandOf(pid: number): string {
  const file = `/proc/${pid}/cmdline`
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

/** Nothing asynchronous comes to its end at an exit, so a child speaks to Docker and to the servers. */
function removeRemnants(): void {
  for (const pid of remnants.pids) killNow(pid)
  for (const folder of remnants.folders) rmSync(folder, { recursive: true, force: true })

  const remote: RemoteRemnants = {
    containers: [...remnants.containers],
    mongoDatabases: [...remnants.mongoDatabases],
    redisDatabases: [...remnants.redisDatabases],
  }
  if (Object.values(remote).every((each: readonly string[]) => each.length === 0)) return
  // Detached, which Node knows here though its types do not: a second Ctrl-C reaches all that the terminal has in front.
  const options: SpawnSyncOptionsWithStringEncoding & Pick<SpawnOptions, 'detached'> = {
    detached: true,
    input: JSON.stringify(remote),
    encoding: 'utf8',
    timeout: REMOVAL_MS,
    killSignal: 'SIGKILL',
  }
  const { status, stderr } = spawnSync(process.execPath, [REMOVE_REMNANTS], options)
  if (status !== 0) console.error(`The test run leaves engines behind, which the next one will try to remove:\n${stderr}`)
}

function killNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
