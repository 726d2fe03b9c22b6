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

  it('exits with 0 if every test passes', () => {
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

  it('prints the counts after the output of teardowns and late timers', () => {
    const run = report(`
      after(() => console.log('torn down'))
      it('passes', () => { setTimeout(() => console.log('late'), 50) })`)
    expect(run.output).to.include('torn down').and.to.include('late')
    expect(run.lastLine).to.equal('1 passed, 0 failed, 0 skipped')
  })

  it('exits with an error if something throws after the last test', () => {
    const run = report("it('passes', () => { setTimeout(() => { throw new Error('late') }, 50) })")
    expect(run.status).to.not.equal(0)
  })

  it('exits with an error if something keeps the process open, and says what it is', () => {
    const run = report("it('passes', () => { setInterval(() => {}, 1000) })", ['--reporter-option', 'graceMs=50'])
    expect(run.errors).to.include('something keeps the process open: ').and.to.include('Timeout')
    expect(run.lastLine).to.equal('1 passed, 0 failed, 0 skipped')
    expect(run.status).to.not.equal(0)
  })

  it('exits with an error if there is no test to run', () => {
    expect(report("it('passes', () => {})", ['--grep', 'planted']).status).to.not.equal(0)
  })

  it('lists the skipped tests with their reasons', () => {
    const run = report(skippingSuite, [], { REQUIRE_ENGINES: '' })
    expect(run.output).to.include('SKIPPED: the docs page opens: there is no Chromium\n')
    expect(run.output).to.include('SKIPPED: the docs page sends a request: there is no Chromium\n')
    expect(run.output).to.include('SKIPPED: one test alone: it is Tuesday\n')
    expect(run.output).to.include('SKIPPED: not yet written: no reason given\n')
    expect(run.lastLine).to.equal('1 passed, 0 failed, 4 skipped')
  })

  it('says in the last lines before the counts how many tests did not run and how to run them', () => {
    const run = report(skippingSuite, [], { REQUIRE_ENGINES: '' })
    expect(run.lines.slice(-3)).to.deep.equal([
      '4 of 5 tests did not run.',
      'To run 2 of them: install Chromium.',
      '1 passed, 0 failed, 4 skipped',
    ])
  })

  it('does not mention skipped tests if every test ran', () => {
    expect(report("it('passes', () => {})").output).to.not.match(/did not run|To run/)
  })

  it('counts tests as failed, not as skipped, if an engine does not start', () => {
    const run = report(enginesSuite, [], { REQUIRE_ENGINES: '' })
    expect(run.output).to.include('Error: the container has exited')
    expect(run.output).to.include('SKIPPED: on a machine without Docker runs: Docker does not respond\n')
    expect(run.lastLine).to.equal('0 passed, 1 failed, 1 skipped')
    expect(run.status).to.not.equal(0)
  })

  it('counts tests without an engine as failed if REQUIRE_ENGINES=1 is set', () => {
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

  const enginesSuite = `
    import { NoEngine, withEngine } from ${JSON.stringify(pathToFileURL('dist/test/support/engines/no-engine.js').href)}
    describe('on a machine without Docker', () => {
      before(function () { return withEngine(this, async () => { throw new NoEngine('Docker does not respond') }) })
      it('runs', () => {})
    })
    describe('on a machine with a broken image', () => {
      before(function () { return withEngine(this, async () => { throw new Error('the container has exited') }) })
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
