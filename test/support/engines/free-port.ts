import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * Below the ephemeral ports, so that no other process gets the port of a server that is killed and restarted. The same goes for
 * the ports 10,000 above, which Redis uses in cluster mode.
 */
const FIRST_PORT = 15_000
const LAST_PORT = 22_000

/** A port on 127.0.0.1 that is free now. Another process may still take it. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST_PORT, LAST_PORT)
    if (await isFree(port)) return port
  }
}

/** Starts a server on a free port. If another process takes the port first, tries other ports. */
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
