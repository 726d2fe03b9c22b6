import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { endProcesses, startService } from '../support/process.js'

const page = readFileSync('docs/api/int64.md', 'utf8')
const examples = [...page.matchAll(/```js\n([\s\S]*?)```\s+It prints:\s+```text\n([\s\S]*?)```/g)].map(([, code, output]) => ({
  code: code as string,
  output: output as string,
}))

/** Node.js 20 has `JSON.rawJSON` behind a flag. */
const FLAGS = 'rawJSON' in JSON ? [] : ['--harmony-json-parse-with-source']

describe('docs/api/int64.md', () => {
  after(endProcesses)

  it('has two examples, each with its output', () => {
    expect(examples).to.have.length(2)
    expect(page.match(/```js/g)).to.have.length(2)
  })

  for (const [index, { code, output }] of examples.entries()) {
    it(`shows the output of example ${index + 1}, and the service keeps every digit`, async () => {
      const service = await startService({ SAMPLE_DATA: 'off' })
      const env = { PATH: process.env['PATH'], API_KEY: service.keys.free, PETSTORE_URL: service.url }
      const { stdout, stderr } = await promisify(execFile)(process.execPath, [...FLAGS, '--input-type=module', '--eval', code], { env })
      expect({ stdout, stderr }).to.deep.equal({ stdout: output, stderr: '' })
      const pets = await service.send('/v1/pets', { key: service.keys.free })
      expect(pets.text).to.include('"categoryId":9223372036854775807')
    })
  }
})
