import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { endProcesses, runPetstore, startService } from '../support/process.js'

describe('the version', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }

  afterEach(endProcesses)

  it('is printed by petstore --version, whatever the settings', async () => {
    expect(await runPetstore(['--version'], { PORT: 'none' })).to.deep.include({ exitCode: 0, stdout: `${version}\n`, stderr: '' })
  })

  it('is the same in the OpenAPI document and in the metrics', async () => {
    const service = await startService()
    expect((await service.send('/openapi.json')).json.info.version).to.equal(version)
    expect(await (await fetch(`${service.adminUrl}/metrics`)).text()).to.include(`petstore_build_info{version="${version}"`)
  })
})
