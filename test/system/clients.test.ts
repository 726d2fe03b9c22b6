import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { ClientTools } from '../support/client-tools.js'
import { openClientTools, readBlocks } from '../support/client-tools.js'
import { endProcesses, startService } from '../support/process.js'

const PAGE = 'docs/api/clients.md'

const LANGUAGES = [
  { heading: 'TypeScript', language: 'ts', file: 'call.ts' },
  { heading: 'Python', language: 'python', file: 'call.py' },
  { heading: 'Go', language: 'go', file: 'call.go' },
] as const

const { paths } = JSON.parse(readFileSync('docs/openapi.json', 'utf8')) as Record<
  'paths',
  Record<string, Record<string, { operationId: string }>>
>
const operationIds = Object.values(paths).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId))

describe('The generated clients in docs/api/clients.md', function () {
  this.timeout(240_000)
  const opened: { tools?: ClientTools } = {}
  afterEach(async () => {
    opened.tools?.endPrograms()
    opened.tools?.remove()
    await endProcesses()
  })

  for (const { heading, language, file } of LANGUAGES) {
    if (language === 'go' && process.env['WITH_GO'] !== '1') continue
    it(`compile, add a pet with an exact categoryId, read an error, and contain every operation: ${heading}`, async function () {
      const tools = (opened.tools = openClientTools(this))
      const { url, keys } = await startService()
      const env = { API_KEY: keys.free, PETSTORE_URL: url }
      const [install, generate, run] = readBlocks(PAGE, heading, '(?:sh|bash)')
      const [code = ''] = readBlocks(PAGE, heading, language)
      expect(install, 'the first block installs the generator').to.include('install')
      writeFileSync(join(tools.folder, 'package.json'), '{ "type": "module" }')
      writeFileSync(join(tools.folder, file), code)

      const [output] = readBlocks(PAGE, 'Generate a client', 'text')
      for (const command of language === 'go' ? [install, generate, run] : [generate, run]) {
        const script = `${command}`.replaceAll('http://127.0.0.1:8080', url)
        const { exitCode, stdout, stderr } = await tools.runScript(script, env)
        expect(exitCode, `${script}\n${stdout}${stderr}`).to.equal(0)
        if (command === run) expect(stdout).to.equal(output)
      }
      const { stdout: generated } = await tools.runScript('find petstore* -type f -print -exec cat {} +')
      const names = generated.toLowerCase().replaceAll('_', '')
      for (const id of operationIds) expect(names.includes(id.toLowerCase()), id).to.equal(true)
    })
  }
})
