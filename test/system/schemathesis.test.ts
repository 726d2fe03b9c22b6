import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import type { ClientTools } from '../support/client-tools.js'
import { openClientTools } from '../support/client-tools.js'
import { endProcesses, startService } from '../support/process.js'

const PHASES = ['examples', 'coverage', 'fuzzing', 'stateful']
/** Tests run in the root of the repository. */
const CONFIG = resolve('test/clients/schemathesis.toml')
/** Its enterprise plan has limits that no run reaches. */
const HIGH_LIMITS = { PLANS_FILE: resolve('bench/plans.json') }
const isLong = process.env['LONG'] === '1'

interface Report {
  readonly phases: Readonly<Record<string, { readonly status: string }>>
  readonly operations: { readonly total: number; readonly tested: number }
  readonly test_cases: { readonly generated: number }
  readonly failures: readonly unknown[]
  readonly errors: readonly unknown[]
}

describe('Schemathesis, with all checks and phases', function () {
  this.timeout(isLong ? 1_800_000 : 600_000)
  const opened: { tools?: ClientTools } = {}

  before(function () {
    opened.tools = openClientTools(this)
  })
  afterEach(async () => {
    opened.tools?.endPrograms()
    await endProcesses()
  })
  after(() => opened.tools?.remove())

  it('finds nothing in 2,000 requests or more', async () => {
    const { url, keys } = await startService({ ...HIGH_LIMITS, LOG_LEVEL: 'warn' })
    const report = await fuzz(url, keys.enterprise, isLong ? 2_000 : 260)
    expect(report.test_cases.generated).to.be.at.least(2_000)
  })

  it('finds nothing in the responses to a key that reaches its limits and is banned', async () => {
    const service = await startService({ LOG_LEVEL: 'warn' })
    await fuzz(service.url, service.keys.free, 30)
    const { json } = await service.send('/v1/pets', { key: service.keys.free })
    expect(json).to.include({ code: 'key_temporarily_banned' })
  })

  async function fuzz(url: string, key: string, maxExamples: number): Promise<Report> {
    if (!opened.tools) throw new Error('The client tools are not open')
    const args = ['run', `${url}/openapi.json`, '--max-examples', `${maxExamples}`, '--report', 'json', '--report-json-path', 'report.json']
    const env = { API_KEY: key, HOOKS: resolve('test/clients/schemathesis_hooks.py') }
    const { exitCode, stdout, stderr } = await opened.tools.run('schemathesis', ['--config-file', CONFIG, ...args], env)
    expect(exitCode, `${stdout}${stderr}`).to.equal(0)
    const report = JSON.parse(readFileSync(join(opened.tools.folder, 'report.json'), 'utf8')) as Report
    expect(report).to.deep.include({ failures: [], errors: [] })
    expect(report.phases).to.deep.equal(Object.fromEntries(PHASES.map((phase) => [phase, { status: 'success', skip_reason: null }])))
    expect(report.operations.tested).to.equal(report.operations.total)
    return report
  }
})
