import { spawnSync } from 'node:child_process'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/**
 * Names a running process by its machine, its pid and when it started, so that a later process with the same pid is not taken
 * for it. Undefined when there is no such process.
 */
export function stampOf(pid: number): string | undefined {
  const startedAt = startOf(pid)
  return startedAt === undefined ? undefined : `${thisMachine()}/${pid}/${startedAt}`
}

/** Of a process on another machine, or in another container, nothing can be known: it counts as running. */
export function isGone(stamp: string): boolean {
  const { machine, pid } = partsOf(stamp)
  return machine === thisMachine() && stampOf(pid) !== stamp
}

/** Undefined where the process is not of this machine, or no longer running. */
export function runningPid(stamp: string): number | undefined {
  const { pid } = partsOf(stamp)
  return stampOf(pid) === stamp ? pid : undefined
}

function partsOf(stamp: string): { machine: string; pid: number } {
  const [, machine = '', pid = ''] = /^(.*)\/(\d+)\/[^/]*$/.exec(stamp) ?? []
  return { machine, pid: Number(pid) }
}

/** Containers may share a host name and a Docker, and number their processes each for itself. */
function thisMachine(): string {
  return process.platform === 'linux' ? `${hostname()}/${readlinkSync('/proc/self/ns/pid')}` : hostname()
}

function startOf(pid: number): string | undefined {
  if (process.platform !== 'linux') {
    const { stdout } = spawnSync('ps', ['-o', 'lstart=', '-p', `${pid}`], { encoding: 'utf8' })
    return stdout.trim() === '' ? undefined : stdout.trim().replaceAll(/\W+/g, '-')
  }
  // The name of the program comes second, in brackets, and may hold spaces and brackets itself. State is the 3rd field, the start the 22nd.
  const fields = read(`/proc/${pid}/stat`)
    ?.replace(/^.*\) /s, '')
    .split(' ')
  const hasEnded = fields?.[0] === 'Z'
  return hasEnded ? undefined : fields?.[19]
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}
