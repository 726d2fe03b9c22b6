import { expect } from 'chai'
import { runProgram } from '../../support/command-line.js'

describe('the petstore command', () => {
  for (const args of [[], ['fly'], ['serve', '--fast'], ['serve', 'now'], ['openapi', '--format', 'xml']]) {
    it(`rejects '${['petstore', ...args].join(' ')}' and ${args.length ? 'points to --help' : 'prints its usage'}`, async () => {
      const { usage, stdout, stderr } = await runProgram(args)
      expect({ usage, stdout }).to.deep.equal({ usage: 'wrong', stdout: '' })
      expect(stderr).to.include(args.length ? '--help)\n' : 'Usage: petstore')
    })
  }

  it('lists its commands and exit codes with --help', async () => {
    const { usage, stdout } = await runProgram(['--help'])
    expect(usage).to.equal('right')
    for (const command of ['serve', 'keys', 'seed', 'openapi']) expect(stdout).to.match(new RegExp(`^ +${command}\\b`, 'm'))
    expect(stdout).to.match(/^Exit codes: 0 .*\b1 .*\b2 /m)
  })

  it('lists the formats with openapi --help', async () => {
    expect((await runProgram(['openapi', '--help'])).stdout)
      .to.include('"json"')
      .and.include('"yaml"')
  })
})
