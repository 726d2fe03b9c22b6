import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * Below the ports that systems give out by themselves: while an engine is killed, its port is not given to somebody else. Ten
 * thousand further on, where Redis in cluster mode talks to its peers, is below them too.
 */
const FIRST_PORT = 15_000
const LAST_PORT = 22_000

/** On 127.0.0.1; somebody may take it before it is used. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST_PORT, LAST_PORT)
    if (await isFree(port)) return port
  }
}

/** Starts something on a free port, and on another one where somebody was faster. */
export async function onFreePort<Started>(start: (port: number) => Promise<Started>): Promise<Started> {
  for (let attemptsLeft = 4; ; attemptsLeft--) {
    const port = await freePort()
    try {
      return await start(port)
    } catch (error) {
      if (attemptsLeft === 0 || !/address already in use|port is already allocated/i.test(String(error))) throw error
    }
  }
}

async function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
