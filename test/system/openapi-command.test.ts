import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { parse } from 'yaml'
import type { Ended, Settings } from '../support/process.js'
import { endProcesses, PETSTORE, runPetstore, startService } from '../support/process.js'
import { skipFor } from '../support/skip.js'

/** The committed document; the compiled tests lie in a folder of the repository's root. */
const COMMITTED = new URL('../../../docs/openapi.json', import.meta.url)

describe('petstore openapi', () => {
  afterEach(endProcesses)

  it('writes the document that is committed, byte for byte', async function () {
    if (!existsSync(COMMITTED)) skipFor(this, `there is no ${COMMITTED.pathname}`)
    expect((await openApi()).stdout).to.equal(readFileSync(COMMITTED, 'utf8'))
  })

  it('writes what the running service serves, in both formats', async () => {
    const settings = { PUBLIC_URL: 'https://pets.example' }
    const service = await startService(settings)
    expect((await service.send('/openapi.json')).text).to.equal((await openApi([], settings)).stdout)
    expect((await service.send('/openapi.yaml')).text).to.equal((await openApi(['--format', 'yaml'], settings)).stdout)
  })

  it('writes OpenAPI 3.1 with every operation', async () => {
    const document = JSON.parse((await openApi()).stdout) as {
      openapi: string
      paths: Record<string, Record<string, { operationId: string }>>
    }
    expect(document.openapi).to.match(/^3\.1\.\d+$/)
    const ids = Object.values(document.paths).flatMap((operations) => Object.values(operations).map(({ operationId }) => operationId))
    expect(ids).to.have.members(['listPets', 'createPet', 'getPet', 'listOrders'])
  })

  it('writes the same document as YAML, without aliases that some readers refuse', async () => {
    const json = JSON.parse((await openApi(['--format', 'json'])).stdout) as unknown
    const { stdout } = await openApi(['--format', 'yaml'])
    expect(parse(stdout, { maxAliasCount: 0 })).to.deep.equal(json)
  })

  for (const [settings, url] of [
    [{ PUBLIC_URL: 'https://pets.example', HOST: '10.0.0.1', PORT: '80' }, 'https://pets.example/v1'],
    [{ HOST: '10.0.0.1', PORT: '8081' }, 'http://10.0.0.1:8081/v1'],
    [{ HOST: '0.0.0.0', PORT: '0' }, 'http://localhost:8080/v1'],
    [{ HOST: '::' }, 'http://localhost:8080/v1'],
    [{}, 'http://127.0.0.1:8080/v1'],
  ] satisfies [Settings, string][]) {
    it(`contains the server URL ${url} with the settings ${JSON.stringify(settings)}`, async () => {
      const { servers } = JSON.parse((await openApi([], settings)).stdout) as { servers: { url: string }[] }
      expect(servers.map((server) => server.url)).to.deep.equal([url])
    })
  }

  it('requires neither the settings of replicas nor a choice of storage in production', async () => {
    const wanted = (await openApi()).stdout
    expect((await openApi([], { NODE_ENV: 'production' })).stdout).to.equal(wanted)
    expect((await openApi([], { MONGODB_URL: 'mongodb://db', REDIS_URL: 'redis://cache' })).stdout).to.equal(wanted)
  })

  it('ends quietly when its reader has read enough', async () => {
    const { stderr } = await promisify(execFile)('bash', ['-c', '"$0" "$1" openapi | head -c 1', process.execPath, PETSTORE])
    expect(stderr).to.equal('')
  })
})

async function openApi(args: readonly string[] = [], settings: Settings = {}): Promise<Ended> {
  const ended = await runPetstore(['openapi', ...args], settings)
  expect(ended).to.include({ exitCode: 0, stderr: '' })
  return ended
}
