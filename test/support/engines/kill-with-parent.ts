import { spawnSync } from 'node:child_process'

const OPTIONS = ['--pdeathsig', 'KILL']

/** Returns a command that runs the program. On Linux, the kernel kills the program if the test run is killed. */
export function killWithParent(program: string, args: readonly string[]): [command: string, args: readonly string[]] {
  const isSupported = spawnSync('setpriv', [...OPTIONS, 'true'], { stdio: 'ignore' }).status === 0
  return isSupported ? ['setpriv', [...OPTIONS, program, ...args]] : [program, args]
}
