import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { ERROR_CATALOGUE } from '../../src/adapters/http/errors/error-catalogue.js'
import { isLikelyTypo } from '../../src/likely-typo.js'
import { SETTING_NAMES } from '../../src/settings.js'
import { countLines, findImportClosure } from '../support/import-closure.js'

/** Tests run at the root of the repository. */
const read = (path: string) => readFileSync(path, 'utf8')

const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' }).map((path) => `docs/${path}`),
].filter((path) => path.endsWith('.md'))

function marked(text: string, mark: string): string {
  const found = new RegExp(`<!-- ${mark}:[^\\n]*-->\\n([\\s\\S]*?)\\n<!-- /${mark} -->`).exec(text)?.[1]
  if (!found) throw new Error(`No part marked ${mark}`)
  return found
}

describe('The documents', () => {
  it('contain the error codes, error messages and plans of the code', () => {
    expect(marked(read('docs/api/errors.md'), 'errors')).to.include('| [`bad_request`](#bad_request) | 400 |')
    for (const page of ['README.md', 'docs/api/rate-limits.md']) expect(marked(read(page), 'plans')).to.include('| Free | 60 | 1,000 |')
    const { status, stderr } = spawnSync(process.execPath, ['scripts/docs-from-code.mjs', 'check'], { encoding: 'utf8' })
    expect({ status, stderr }).to.deep.equal({ status: 0, stderr: '' })
  })

  it('explain the cause and the remedy of every error code, of the service and of nginx, and of no other', () => {
    const [, nginxCodes = ''] = /map \$status \$error_code {([^}]*)}/.exec(read('config/nginx.conf')) ?? []
    const codes = [
      ...Object.keys(ERROR_CATALOGUE),
      ...[...nginxCodes.matchAll(/(?:\d{3}|default) (\w+);/g)].map(([, code]) => code as string),
    ]
    const sections = read('docs/api/errors.md').matchAll(/^### `(\w+)`\n\n- \*\*Cause:\*\* \S.+\n- \*\*Remedy:\*\* \S.+\n\n/gm)
    expect([...sections].map(([, code]) => code)).to.have.members([...new Set(codes)])
    expect([...read('docs/api/errors.md').matchAll(/^### /gm)]).to.have.length(new Set(codes).size)
  })

  for (const [trace, maxLines] of [
    ['createPet', 500],
    ['quota', 1_310],
  ] as const) {
    it(`trace ${trace} in the architecture document in at most 12 files and ${maxLines} lines`, () => {
      const [, text = ''] = new RegExp(`<!-- trace ${trace}: [^]*?-->([^]*?)<!-- /trace -->`).exec(read('docs/architecture.md')) ?? []
      const files = [...text.matchAll(/^\d+\. `(src\/[^`]+)`/gm)].map(([, path]) => path as string)
      expect(files).to.have.lengthOf.within(8, 12)
      expect(countLines(files)).to.be.at.most(maxLines)
    })
  }

  it('list everything that createPet and a quota decision import, in at most 24 and 32 files', () => {
    const closures = [...read('docs/architecture.md').matchAll(/<!-- closure of (.+) -->/g)].map(([, entries = '']) => entries.split(' '))
    const [createPet = [], quota = []] = closures.map(findImportClosure)
    expect(createPet.length).to.be.within(12, 24)
    expect(countLines(createPet)).to.be.at.most(900)
    expect(quota.length).to.be.within(12, 32)
    expect(countLines(quota)).to.be.at.most(2_300)
  })

  it('list every operation in the README, with its stability or its removal', () => {
    const { paths } = JSON.parse(read('docs/openapi.json')) as { paths: Record<string, Record<string, { deprecated?: boolean }>> }
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { deprecated }]) => ({ name: `${method.toUpperCase()} /v1${path}`, deprecated })),
    )
    expect(operations).to.have.lengthOf.at.least(4)
    for (const { name, deprecated } of operations) {
      const row = read('README.md')
        .split('\n')
        .find((line) => line.startsWith(`| \`${name}\` |`))
      expect(row, name).to.match(deprecated ? /\| deprecated, .+ \|$/ : /\| (stable|beta|experimental) \|$/)
    }
  })

  it('name only files and folders that exist', () => {
    const missing = PAGES.flatMap((page) =>
      [...read(page).matchAll(/`((?:src|test|docs|config|scripts|bench)\/[\w./-]*)`/g)]
        .map(([, path]) => path as string)
        .filter((path) => !existsSync(path))
        .map((path) => `${page}: ${path}`),
    )
    expect(missing).to.deep.equal([])
  })

  it('link only to files and headings that exist', () => {
    const broken = PAGES.flatMap((page) =>
      [...read(page).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([\w-]+))?\)/g)]
        .filter(([, path, heading]) => {
          const target = path ? join(dirname(page), path) : page
          return !existsSync(target) || (heading !== undefined && !listHeadings(target).includes(heading))
        })
        .map(([link]) => `${page}: ${link}`),
    )
    expect(broken).to.deep.equal([])
  })

  it('name the versions of client packages that are tested', () => {
    const { dependencies } = JSON.parse(read('test/clients/package.json')) as { dependencies: Readonly<Record<string, string>> }
    const requirements = read('test/clients/requirements.txt').split('\n')
    const commands = ['clients', 'retry-settings'].flatMap((page) => read(`docs/api/${page}.md`).match(/^(?:npm|pip) install .+$/gm) ?? [])
    const npmPackages = [...commands.join(' ').matchAll(/(\S+)@(\d\S*)/g)]
    for (const [, name = '', version = ''] of npmPackages) expect(dependencies[name]?.startsWith(version), name).to.equal(true)
    expect(npmPackages).to.have.length(Object.keys(dependencies).length)
    const pythonPackages = commands.join(' ').match(/\S+==\S+/g)
    expect(pythonPackages).to.have.length(3)
    expect(requirements).to.include.members(pythonPackages ?? [])
  })

  it('misspell no setting', () => {
    const names = new Set<string>(SETTING_NAMES.flatMap((name) => [name, `${name}_FILE`]))
    // These pages describe what happens to misspelled ones.
    const pages = PAGES.filter((page) => page !== 'docs/operations/settings.md' && page !== 'docs/decisions/0008-settings.md')
    const misspelled = pages.flatMap((page) =>
      [...read(page).matchAll(/\b[A-Z]+(?:_[A-Z]+)+\b/g)]
        .map(([name]) => name)
        .filter((name) => !names.has(name) && SETTING_NAMES.some((setting) => isLikelyTypo(name, setting)))
        .map((name) => `${page}: ${name}`),
    )
    expect(misspelled).to.deep.equal([])
  })

  it('have an index that lists every decision record by its title', () => {
    const records = readdirSync('docs/decisions').filter((file) => file !== 'README.md')
    const listed = [...read('docs/decisions/README.md').matchAll(/^\| \[(\d+)\]\((\d{4}-[\w-]+\.md)\) \| (.+) \|$/gm)]
    expect(listed.map(([, , file]) => file)).to.deep.equal(records.toSorted())
    for (const [, number, file, title] of listed) expect(read(`docs/decisions/${file}`).split('\n')[0]).to.equal(`# ${number}. ${title}`)
  })

  it('have decision records that state context, decision, alternatives and consequences', () => {
    for (const file of readdirSync('docs/decisions').filter((name) => name !== 'README.md' && !name.startsWith('0012'))) {
      const headings = [...read(`docs/decisions/${file}`).matchAll(/^## (.+)$/gm)].map(([, heading]) => heading)
      expect(headings, file).to.include.members(['Context', 'Decision', 'Alternatives', 'Consequences'])
    }
  })
})

/** As anchors of links. */
function listHeadings(page: string): string[] {
  return [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  )
}
