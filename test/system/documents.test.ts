import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { ERROR_CATALOGUE } from '../../src/adapters/http/errors/error-catalogue.js'

/** Tests run at the root of the repository. */
const read = (path: string) => readFileSync(path, 'utf8')

function marked(text: string, mark: string): string {
  const found = new RegExp(`<!-- ${mark}:[^\\n]*-->\\n([\\s\\S]*?)\\n<!-- /${mark} -->`).exec(text)?.[1]
  if (!found) throw new Error(`No part marked ${mark}`)
  return found
}

describe('The documents', () => {
  it('list every error code in the README, with the status and the message of the catalogue', () => {
    const rows = Object.entries(ERROR_CATALOGUE).map(([code, { status, message }]) => `| \`${code}\` | ${status} | ${message} |`)
    const [, , ...listed] = marked(read('README.md'), 'errors').split('\n')
    expect(listed).to.deep.equal(rows)
  })

  it('follow createPet from route to storage in at most 12 files and 500 lines', () => {
    const files = [...marked(read('docs/architecture.md'), 'create-pet').matchAll(/`(src\/[^`]+)`/g)].map(([, path]) => path as string)
    const lines = files.map((path) => read(path).trimEnd().split('\n').length)
    expect(files).to.have.lengthOf.within(8, 12)
    expect(lines.reduce((sum, count) => sum + count, 0)).to.be.at.most(500)
  })

  it('have a decision listed for every page, and a page for every decision listed', () => {
    const index = read('docs/decisions/README.md')
    const listed = [...index.matchAll(/\((\d{4}-[\w-]+\.md)\)/g)].map(([, file]) => file as string)
    for (const file of listed) expect(read(`docs/decisions/${file}`)).to.match(/^# \d+\. /)
    expect(listed).to.have.lengthOf.at.least(9)
  })
})
