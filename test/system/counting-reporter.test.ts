import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'

describe('the report of a test run', () => {
  let folder: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'petstore-report-'))
  })

  afterEach(() => rmSync(folder, { recursive: true }))

  it('ends with the counts of passed, failed and skipped tests', () => {
    const run = report(`
      it('passes', () => {})
      it('passes too', () => {})
      it('fails', () => { throw new Error('planted') })
      it.skip('is skipped')`)
    expect(run.lastLine).to.equal('2 passed, 1 failed, 1 skipped')
    expect(run.status).to.not.equal(0)
  })

  it('counts nothing as failed and exits with 0 when everything passes', () => {
    const run = report("it('passes', () => {})")
    expect(run.lastLine).to.equal('1 passed, 0 failed, 0 skipped')
    expect(run.status).to.equal(0)
  })

  it('counts a failing hook as a failure', () => {
    const run = report(`
      describe('a suite', () => {
        before(() => { throw new Error('planted') })
        it('never runs', () => {})
      })`)
    expect(run.lastLine).to.equal('0 passed, 1 failed, 0 skipped')
    expect(run.status).to.not.equal(0)
  })

  it('says the counts after everything that teardown and late timers print', () => {
    const run = report(`
      after(() => console.log('torn down'))
      it('passes', () => { setTimeout(() => console.log('late'), 50) })`)
    expect(run.output).to.include('torn down').and.to.include('late')
    expect(run.lastLine).to.equal('1 passed, 0 failed, 0 skipped')
  })

  it('does not exit with 0 when something is thrown after the last test', () => {
    const run = report("it('passes', () => { setTimeout(() => { throw new Error('late') }, 50) })")
    expect(run.status).to.not.equal(0)
  })

  it('ends a run that something keeps open, says what it is, and does not exit with 0', () => {
    const run = report("it('passes', () => { setInterval(() => {}, 1000) })", ['--reporter-option', 'graceMs=50'])
    expect(run.errors).to.include('something keeps the process open: ').and.to.include('Timeout')
    expect(run.lastLine).to.equal('1 passed, 0 failed, 0 skipped')
    expect(run.status).to.not.equal(0)
  })

  it('does not exit with 0 when there was no test to run', () => {
    expect(report("it('passes', () => {})", ['--grep', 'planted']).status).to.not.equal(0)
  })

  it('names the skipped tests with their reasons', () => {
    const run = report(skippingSuite, [], { REQUIRE_ENGINES: '' })
    expect(run.output).to.include('SKIPPED: the docs page opens: there is no Chromium\n')
    expect(run.output).to.include('SKIPPED: the docs page sends a request: there is no Chromium\n')
    expect(run.output).to.include('SKIPPED: one test alone: it is Tuesday\n')
    expect(run.output).to.include('SKIPPED: not yet written: no reason given\n')
    expect(run.lastLine).to.equal('1 passed, 0 failed, 4 skipped')
  })

  it('says last, before the counts, how many tests did not run and what makes them run', () => {
    const run = report(skippingSuite, [], { REQUIRE_ENGINES: '' })
    expect(run.lines.slice(-3)).to.deep.equal([
      '4 of 5 tests did not run.',
      'To run 2 of them: install Chromium.',
      '1 passed, 0 failed, 4 skipped',
    ])
  })

  it('says nothing of the kind when every test ran', () => {
    expect(report("it('passes', () => {})").output).to.not.match(/did not run|To run/)
  })

  it('counts as failed, not as skipped, what needs an engine that could be had and does not start', () => {
    const run = report(enginesSuite, [], { REQUIRE_ENGINES: '' })
    expect(run.output).to.include('EngineFailed: the container has ended')
    expect(run.output).to.include('SKIPPED: on a machine without Docker runs: no Docker answers\n')
    expect(run.lastLine).to.equal('0 passed, 1 failed, 1 skipped')
    expect(run.status).to.not.equal(0)
  })

  it('counts what would be skipped for want of an engine as failed when REQUIRE_ENGINES=1', () => {
    const run = report(skippingSuite, [], { REQUIRE_ENGINES: '1' })
    expect(run.output).to.include('there is no Chromium')
    expect(run.lastLine).to.equal('1 passed, 2 failed, 1 skipped')
    expect(run.status).to.not.equal(0)
  })

  const skippingSuite = `
    import { skipFor } from ${JSON.stringify(pathToFileURL('dist/test/support/skip.js').href)}
    describe('the docs page', () => {
      before(function () { skipFor(this, 'there is no Chromium', 'install Chromium') })
      it('opens', () => {})
      it('sends a request', () => {})
    })
    it('one test alone', function () { skipFor(this, 'it is Tuesday') })
    it('not yet written')
    it('passes', () => {})`

  const supportModule = (name: string) => JSON.stringify(pathToFileURL(`dist/test/support/${name}.js`).href)

  const enginesSuite = `
    import { EngineFailed, NoEngine } from ${supportModule('engines/no-engine')}
    import { withPatience } from ${supportModule('engines/with-patience')}
    describe('on a machine without Docker', () => {
      before(function () { return withPatience(this, async () => { throw new NoEngine(['no Docker answers']) }) })
      it('runs', () => {})
    })
    describe('on a machine with a broken image', () => {
      before(function () { return withPatience(this, async () => { throw new EngineFailed('the container has ended') }) })
      it('runs', () => {})
    })`

  function report(text: string, options: string[] = [], env: NodeJS.ProcessEnv = {}) {
    const file = join(folder, 'planted.test.mjs')
    writeFileSync(file, text)
    const mocha = ['node_modules/mocha/bin/mocha.js', '--no-config', '--no-package', '--fail-zero']
    const { stdout, stderr, status } = spawnSync(
      process.execPath,
      [...mocha, '--reporter', 'dist/test/support/counting-reporter.js', ...options, file],
      { encoding: 'utf8', env: { ...process.env, ...env } },
    )
    const lines = stdout.split('\n').slice(0, -1)
    return { output: stdout, errors: stderr, status, lines, lastLine: lines.at(-1) }
  }
})
