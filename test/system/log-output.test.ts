import { expect } from 'chai'
import { LoadGenerator } from '../support/load-generator.js'
import type { ServiceProcess, Settings } from '../support/process.js'
import { endProcesses, startService } from '../support/process.js'
import { until, within } from '../support/until.js'

const AMPLE_MS = 15_000

/** Runs the script in the service when it gets SIGUSR2. */
function runOnSigusr2(script: string): Settings {
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(`process.on('SIGUSR2', () => { ${script} })`)}` }
}

const TWO_SIGNALS = "process.emit('SIGTERM', 'SIGTERM'); process.emit('SIGINT', 'SIGINT')"

describe('the log of a service process', function () {
  this.timeout(30_000)
  afterEach(endProcesses)

  /** Sends requests from 20 clients, each with its own ID. */
  function startLoad({ url, keys }: ServiceProcess, atMost = Number.POSITIVE_INFINITY): LoadGenerator {
    let count = 0
    return new LoadGenerator([url], {
      clientsEach: 20,
      atMost,
      key: () => keys.enterprise,
      headers: () => ({ 'x-request-id': `request-${(count += 1)}`.padEnd(64, '-') }),
    })
  }

  const parseLog = ({ logLines }: ServiceProcess) => logLines.map((line) => JSON.parse(line) as { msg: string; requestId?: string })
  const listMessages = (service: ServiceProcess) => parseLog(service).map(({ msg }) => msg)

  function expectOneLinePerResponse(service: ServiceProcess, { hits }: LoadGenerator): void {
    const respondedIds = hits.filter(({ status }) => status !== undefined).map(({ headers }) => headers['x-request-id'])
    const logged = parseLog(service).flatMap(({ requestId }) => requestId ?? [])
    expect(respondedIds.length).to.be.above(100)
    expect(new Set(logged)).to.include.all.keys(respondedIds).and.to.have.property('size', logged.length)
  }

  for (const [end, settings, signal, messages] of [
    ['SIGTERM', {}, 'SIGTERM', ['stopping', 'stopped']],
    ['a second signal', runOnSigusr2(TWO_SIGNALS), 'SIGUSR2', ['stopping']],
    ['an uncaught exception', runOnSigusr2("throw new Error('planted')"), 'SIGUSR2', ['uncaught exception', 'stopping', 'stopped']],
    [
      'an unhandled rejection',
      runOnSigusr2("Promise.reject(new Error('planted'))"),
      'SIGUSR2',
      ['uncaught exception', 'stopping', 'stopped'],
    ],
  ] as const) {
    it(`has a line for every response if ${end} ends the process under load`, async () => {
      const service = await startService(settings)
      const load = startLoad(service)
      await until('the service is under load', () => load.hits.length > 200, AMPLE_MS)
      service.signal(signal)
      await within(AMPLE_MS, 'the process ends', service.ended)
      await load.stop()
      expectOneLinePerResponse(service, load)
      expect(listMessages(service).filter((message) => message !== 'request')).to.deep.equal(['ready', ...messages])
    })
  }

  it('loses no line if its reader is slow, and does not delay responses', async () => {
    const service = await startService()
    service.pauseOutput()
    const load = startLoad(service, 2_000)
    await within(AMPLE_MS, 'all requests have responses', load.done)
    expect(load.hits.every(({ status }) => status !== undefined)).to.equal(true)
    expect(service.logLines.length, 'lines that were read').to.be.below(2_000)
    service.signal('SIGTERM')
    service.resumeOutput()
    expect(await within(AMPLE_MS, 'the process ends', service.ended)).to.include({ exitCode: 0 })
    expectOneLinePerResponse(service, load)
    expect(listMessages(service).slice(-2)).to.deep.equal(['stopping', 'stopped'])
  })

  it('is discarded once its reader has closed the pipe, and the service continues', async () => {
    const service = await startService()
    service.closeOutput()
    const load = startLoad(service, 200)
    await within(AMPLE_MS, 'all requests have responses', load.done)
    expect(load.count(200)).to.equal(200)
    expect(await within(AMPLE_MS, 'the process ends', service.stop())).to.equal(0)
  })
})
