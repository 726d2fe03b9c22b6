import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { endProcesses, PETSTORE, startService } from '../support/process.js'
import { head } from '../support/raw-socket.js'
import { until } from '../support/until.js'

const CLIENTS = 200

/** Two, because the operating system's buffers may take the whole first response. */
const REQUESTS_EACH = 2

const MEMORY_LIMIT_MB = 200

/** The number of measurements after the last request, one every 10 ms. */
const SAMPLES = 200

describe('the files of the docs', function () {
  this.timeout(60_000)
  afterEach(endProcesses)

  for (const encoding of ['identity', 'br']) {
    it(`use less than ${MEMORY_LIMIT_MB} MB while ${CLIENTS} clients request them (${encoding}) and do not read`, async () => {
      const service = await startService()
      const { port } = new URL(service.url)
      const bytes = head('GET /docs/scalar.js HTTP/1.1', ['Host: petstore', `Accept-Encoding: ${encoding}`]).repeat(REQUESTS_EACH)
      const received = () => service.logLines.filter((line) => line.includes('"route":"/docs/scalar.js"')).length
      await service.send('/docs/scalar.js')
      const beforeMb = residentMb(service.pid)
      let grownMb = 0
      const measure = () => (grownMb = Math.max(grownMb, residentMb(service.pid) - beforeMb))
      const sockets: Socket[] = []
      try {
        for (let i = 0; i < CLIENTS; i++) sockets.push(connectAndNeverRead(Number(port), bytes))
        const all = 1 + CLIENTS * REQUESTS_EACH
        await until('all requests are received', () => measure() >= MEMORY_LIMIT_MB || received() >= all, 30_000)
        let samples = 0
        await until('the memory is measured', () => measure() >= MEMORY_LIMIT_MB || ++samples >= SAMPLES, 30_000)
        expect(grownMb).to.be.below(MEMORY_LIMIT_MB)
        expect(sockets.filter(({ destroyed }) => destroyed)).to.deep.equal([])
      } finally {
        for (const socket of sockets) socket.destroy()
      }
    })
  }

  describe('in a build that lacks the bundle', () => {
    let root: string

    beforeEach(() => {
      const built = dirname(PETSTORE)
      root = mkdtempSync(join(dirname(built), 'without-bundle-'))
      cpSync(built, join(root, 'dist/src'), { recursive: true, filter: (source) => !source.endsWith('/scalar.js') })
      cpSync('package.json', join(root, 'package.json'))
    })
    afterEach(() => rmSync(root, { recursive: true }))

    it('prevent the start, with one sentence that says how to fix it', async () => {
      const { code, stderr } = await serveIn(root, 'on')
      expect(code).to.equal(1)
      expect(stderr).to.match(/^The docs page is not built: \S+\/scalar\.js cannot be read\. Run npm run build, or set DOCS=off\n$/)
    })

    it('are not needed with DOCS=off', async () => {
      const { stderr } = await serveIn(root, 'off')
      // The next step of the start fails, because the IP address does not belong to the machine.
      expect(stderr).to.match(/^Cannot listen on 192\.0\.2\.1:/)
    })
  })
})

async function serveIn(root: string, docs: string): Promise<{ code: unknown; stderr: string }> {
  const env = { PATH: process.env['PATH'], DOCS: docs, HOST: '192.0.2.1', PORT: '0', ADMIN_PORT: '0', PLANS_FILE: 'config/plans.json' }
  return new Promise((resolve) => {
    execFile(process.execPath, [join(root, 'dist/src/main.js'), 'serve'], { env }, (error, _stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stderr }),
    )
  })
}

function connectAndNeverRead(port: number, bytes: string): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.pause()
  socket.on('error', () => socket.destroy())
  socket.write(bytes)
  return socket
}

/** Resident memory of a process, in megabytes of 10^6 bytes. */
function residentMb(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return (Number(kib) * 1024) / 1e6
}
