import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { OPERATIONS } from '../../src/adapters/http/operations/operations.js'

interface Schema {
  readonly properties: Record<string, object>
  readonly required: string[]
  readonly enum: string[]
}

interface Operation {
  'x-stability'?: string
  'x-sunset'?: string
  readonly parameters: { readonly name: string; required?: boolean; readonly schema: object }[]
  readonly responses: Record<string, { readonly headers: Record<string, object> }>
}

interface Document {
  readonly info: { version: string }
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: { readonly schemas: Record<string, Schema>; readonly headers: Record<string, object> }
}

const RELEASED = 'docs/openapi-released.json'
const CHANGELOG = 'docs/api/changelog.md'

describe('docs/api/changelog.md', () => {
  const text = readFileSync(CHANGELOG, 'utf8')

  it('has a section for the last released version', () => {
    const { info } = JSON.parse(readFileSync(RELEASED, 'utf8')) as Document
    expect(text).to.include(`\n## ${info.version} (`)
  })

  it('announces every deprecated operation, which stays for at least 12 months', () => {
    const deprecated = OPERATIONS.flatMap(({ method, path, deprecation }) => (deprecation ? [{ method, path, ...deprecation }] : []))
    expect(deprecated).to.have.lengthOf.at.least(1)
    for (const { method, path, since, sunset } of deprecated) {
      expect(text).to.include(`\`${method.toUpperCase()} /v1${path}\` is deprecated`)
      const earliest = new Date(since)
      earliest.setUTCFullYear(earliest.getUTCFullYear() + 1)
      expect(Date.parse(sunset)).to.be.at.least(earliest.getTime())
    }
  })
})

describe('the comparison of the OpenAPI document with the last released one', function () {
  this.timeout(30_000)

  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'petstore-api-changes-test-'))
  })
  after(() => rmSync(folder, { recursive: true }))

  it('passes for the committed documents', async () => {
    expect(await runCheck([])).to.include({ exitCode: 0 })
  })

  for (const [change, edit, reason] of [
    [
      'a response field of a stable operation is removed',
      ({ components }) => removeField(components, 'Pet', 'categoryId'),
      'Property `categoryId` of `Pet` was removed',
    ],
    [
      'a response field of a stable operation becomes optional',
      ({ components }) => void components.schemas['Pet']?.required.pop(),
      'Properties of `Pet` are no longer required: `status`',
    ],
    [
      'a parameter of a stable operation becomes required',
      ({ paths }) => requireParameters(paths, '/pets'),
      '`limit` query parameter became required',
    ],
    [
      'a required field is added to a request',
      ({ components }) => addField(components, 'NewPet', { required: true }),
      'Properties of `NewPet` became required: `color`',
    ],
    [
      'a field is removed from a request',
      ({ components }) => removeField(components, 'NewPet', 'status'),
      '/properties/status: The service would ignore this request field.',
    ],
    [
      'a response header becomes optional',
      ({ components }) => Object.assign(components.headers['X-RateLimit-Limit'] ?? {}, { required: false }),
      '/headers/X-RateLimit-Limit: The response header became optional.',
    ],
    [
      'PetStatus gets another value',
      ({ components }) => void components.schemas['PetStatus']?.enum.push('lost'),
      "Enum of `PetStatus` gained values: 'lost'",
    ],
    [
      'a field of errors is removed',
      ({ components }) => removeField(components, 'Error', 'code'),
      'Property `code` of `Error` was removed',
    ],
    ['a stable operation is removed', ({ paths }) => void delete paths['/pets']?.['post'], 'Operation `POST /pets` was removed'],
    [
      'a deprecated operation is removed before its sunset',
      ({ paths }) => void delete paths['/pets/{petId}'],
      'Path `/pets/{petId}` was removed',
    ],
    [
      'a stable operation becomes experimental',
      ({ paths }) => Object.assign(paths['/pets']?.['get'] ?? {}, { 'x-stability': 'experimental' }),
      'GET /pets: A stable operation became experimental.',
    ],
  ] satisfies [string, (current: Document) => void, string][]) {
    it(`fails if ${change}`, async () => {
      const { exitCode, output } = await compare(edit)
      expect(output).to.include(reason)
      expect(exitCode).to.equal(1)
    })
  }

  for (const [change, edit] of [
    ['a response field of an experimental operation is removed', ({ components }) => removeField(components, 'Order', 'quantity')],
    ['a parameter of an experimental operation becomes required', ({ paths }) => requireParameters(paths, '/store/orders')],
    ['an experimental operation is removed', ({ paths }) => void delete paths['/store/orders']],
    ['an experimental operation becomes stable', ({ paths }) => void delete paths['/store/orders']?.['get']?.['x-stability']],
    ['a field is added to a response', ({ components }) => addField(components, 'Pet', { required: true })],
    ['an optional field is added to a request', ({ components }) => addField(components, 'NewPet', { required: false })],
    ['an optional parameter is added', ({ paths }) => void paths['/pets']?.['get']?.parameters.push(AN_OPTIONAL_PARAMETER)],
    [
      'a response header is added',
      ({ paths }) => Object.assign(paths['/pets']?.['get']?.responses['200']?.headers ?? {}, { 'X-Color': { schema: A_SCHEMA } }),
    ],
    ['an operation is added', ({ paths }) => Object.assign(paths, { '/orders': structuredClone(paths['/store/orders']) })],
  ] satisfies [string, (current: Document) => void][]) {
    it(`passes if ${change}`, async () => {
      const { exitCode, output } = await compare(edit)
      expect(exitCode, output).to.equal(0)
    })
  }

  it('passes if a deprecated operation is removed after its sunset', async () => {
    const { exitCode, output } = await compare(
      ({ paths }) => void delete paths['/pets/{petId}'],
      ({ paths }) => Object.assign(paths['/pets/{petId}']?.['get'] ?? {}, { 'x-sunset': '2026-11-01' }),
    )
    expect(exitCode, output).to.equal(0)
  })

  /** Compares the released document with an edited copy. */
  async function compare(edit: (current: Document) => void, editReleased: (released: Document) => void = () => {}) {
    const paths = [editReleased, edit].map((apply, index) => {
      const document = JSON.parse(readFileSync(RELEASED, 'utf8')) as Document
      apply(document)
      const path = join(folder, `${index}.json`)
      writeFileSync(path, JSON.stringify(document))
      return path
    })
    return runCheck(paths)
  }
})

const A_SCHEMA = { type: 'string', maxLength: 20, pattern: '^[a-z]+$' }
const AN_OPTIONAL_PARAMETER = { name: 'color', in: 'query', required: false, schema: A_SCHEMA }

function removeField({ schemas }: Document['components'], name: string, field: string): void {
  const { properties = {}, required = [] } = schemas[name] ?? {}
  delete properties[field]
  if (required.includes(field)) required.splice(required.indexOf(field), 1)
}

function addField({ schemas }: Document['components'], name: string, { required }: { required: boolean }): void {
  Object.assign(schemas[name]?.properties ?? {}, { color: A_SCHEMA })
  if (required) schemas[name]?.required.push('color')
}

function requireParameters(paths: Document['paths'], path: string): void {
  for (const parameter of paths[path]?.['get']?.parameters ?? []) parameter.required = true
}

async function runCheck(args: readonly string[]): Promise<{ exitCode: number; output: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, ['scripts/check-api-changes.mjs', ...args], (error, stdout, stderr) => {
      resolve({ exitCode: error ? Number(error.code) : 0, output: stdout + stderr })
    })
  })
}
