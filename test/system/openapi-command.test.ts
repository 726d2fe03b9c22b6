import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { parse } from 'yaml'
import type { Ended, Settings } from '../support/process.js'
import { endProcesses, PETSTORE, runPetstore, startService } from '../support/process.js'
import { skipFor } from '../support/skip.js'

/** The committed document. The path is relative to the compiled test. */
const COMMITTED = new URL('../../../docs/openapi.json', import.meta.url)

describe('petstore openapi', () => {
  afterEach(endProcesses)

  it('prints exactly the committed document', async function () {
    if (!existsSync(COMMITTED)) skipFor(this, `there is no ${COMMITTED.pathname}`)
    expect((await openApi()).stdout).to.equal(readFileSync(COMMITTED, 'utf8'))
  })

  it('prints what the running service serves, in both formats', async () => {
    const settings = { PUBLIC_URL: 'https://pets.example' }
    const service = await startService(settings)
    expect((await service.send('/openapi.json')).text).to.equal((await openApi([], settings)).stdout)
    expect((await service.send('/openapi.yaml')).text).to.equal((await openApi(['--format', 'yaml'], settings)).stdout)
  })

  it('prints the same document as YAML, without aliases', async () => {
    const json = JSON.parse((await openApi(['--format', 'json'])).stdout) as unknown
    const { stdout } = await openApi(['--format', 'yaml'])
    expect(parse(stdout, { maxAliasCount: 0 })).to.deep.equal(json)
  })

  it('contains PUBLIC_URL as the server URL, or else HOST and PORT', async () => {
    for (const [settings, url] of [
      [{ PUBLIC_URL: 'https://pets.example', HOST: '10.0.0.1', PORT: '80' }, 'https://pets.example/v1'],
      [{ HOST: '10.0.0.1', PORT: '0' }, 'http://10.0.0.1:8080/v1'],
    ] satisfies [Settings, string][]) {
      const { servers } = JSON.parse((await openApi([], settings)).stdout) as { servers: { url: string }[] }
      expect(servers.map((server) => server.url)).to.deep.equal([url])
    }
  })

  it('requires neither the settings of replicas nor a choice of storage in production', async () => {
    const wanted = (await openApi()).stdout
    expect((await openApi([], { NODE_ENV: 'production' })).stdout).to.equal(wanted)
    expect((await openApi([], { MONGODB_URL: 'mongodb://db', REDIS_URL: 'redis://cache' })).stdout).to.equal(wanted)
  })

  it('exits without an error if the reader closes the pipe early', async () => {
    // The reader ends before the command writes. Otherwise, the whole document would fit into the pipe.
    const { stderr } = await promisify(execFile)('bash', ['-o', 'pipefail', '-c', '"$0" "$1" openapi | true', process.execPath, PETSTORE])
    expect(stderr).to.equal('')
  })
})

async function openApi(args: readonly string[] = [], settings: Settings = {}): Promise<Ended> {
  const ended = await runPetstore(['openapi', ...args], settings)
  expect(ended).to.include({ exitCode: 0, stderr: '' })
  return ended
}
