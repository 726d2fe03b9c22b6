import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { findArchitectureViolations } from './support/architecture.js'

type Files = Readonly<Record<string, string>>

/** The smallest tree without a violation. */
const VALID_TREE: Files = {
  'src/core/pet.ts': 'export interface Pet { id: bigint }',
  'src/core/ports/pet-store.ts': "import type { Pet } from '../pet.js'\nexport interface PetStore { get(id: bigint): Pet }",
  'src/core/use-cases/get-pet.ts':
    "import type { PetStore } from '../ports/pet-store.js'\nexport const getPet = (pets: PetStore) => pets.get(1n)",
  'src/adapters/memory/memory-pet-store.ts':
    "import type { PetStore } from '../../core/ports/pet-store.js'\nexport const pets: PetStore = { get: (id) => ({ id }) }",
  'src/adapters/mongo/mongo-connection.ts': "import { MongoClient } from 'mongodb'\nexport const connect = () => new MongoClient('')",
  'src/adapters/node/crypto-secrets.ts':
    "import { randomBytes } from 'node:crypto'\nexport const secrets = { process: () => randomBytes(32) }\nsecrets.process()",
  'src/adapters/opentelemetry/tracing.ts': "export { trace } from '@opentelemetry/api'",
  'src/adapters/redis/redis-client.ts': "import { Redis } from 'ioredis'\nexport const connect = () => new Redis()",
  'src/adapters/http/http-server.ts': "import Koa from 'koa'\nexport const app = () => new Koa()",
  'src/adapters/cli/command-line.ts': 'export const line = (port: number) => process.argv[port]',
  'src/config.ts': "export const port = Number(process.env['PORT'])",
  'src/wiring/container.ts':
    "import { Container } from 'inversify'\nimport { app } from '../adapters/http/http-server.js'\nimport { pets } from '../adapters/memory/memory-pet-store.js'\nimport type { line } from '../adapters/cli/command-line.js'\nimport { port } from '../config.js'\nexport const all = { app, pets, Container, port, line: {} as typeof line }",
  'src/main.ts':
    "import { line } from './adapters/cli/command-line.js'\nimport { all } from './wiring/container.js'\nprocess.exitCode = line(all.port) ? 0 : 1",
}

/** Files that the planted code imports, so that no import is unresolved. */
const IMPORTED: Files = {
  'src/adapters/mongo/mongo-pet-store.ts': 'export type M = 1',
  'src/adapters/redis/redis-quota-store.ts': 'export type R = 1',
  'src/adapters/shared.ts': 'export const x = 1',
  'src/service.ts': 'export const serve = 1',
  'src/wiring/planted.ts': 'export const all = 1',
  'test/planted.ts': 'export const aPet = 1',
}

/** file below src | code | violated rules */
const VIOLATIONS = `
core/pet.ts               | import type { Hash } from 'node:crypto'; export type Pet = Hash                      | core-imports-only-core
core/pet.ts               | import { z } from 'zod'; export type Pet = z.ZodType                                 | core-imports-only-core
core/quota.ts             | export * from '../adapters/memory/memory-pet-store.js'                               | core-imports-only-core
core/quota.ts             | export { port } from '../config.js'                                                  | core-imports-only-core only-entry-points-and-wiring-import-the-settings
adapters/http/pets.ts     | import type { M } from '../mongo/mongo-pet-store.js'; export type N = M              | adapters-import-only-core-and-their-own-folder
adapters/http/pets.ts     | export const later = () => import('../redis/redis-quota-store.js')                   | adapters-import-only-core-and-their-own-folder
adapters/memory/pets.ts   | export { app } from '../http/http-server.js'                                         | adapters-import-only-core-and-their-own-folder
adapters/node/pets.ts     | export { app } from '../http/http-server.js'                                         | adapters-import-only-core-and-their-own-folder
adapters/mongo/pets.ts    | export { app } from '../http/http-server.js'                                         | adapters-import-only-core-and-their-own-folder
adapters/redis/pets.ts    | export { app } from '../http/http-server.js'                                         | adapters-import-only-core-and-their-own-folder
adapters/http/pets.ts     | export { x } from '../shared.js'                                                     | adapters-import-only-core-and-their-own-folder
adapters/http/pets.ts     | import type { all } from '../../wiring/container.js'; export type A = typeof all     | adapters-import-only-core-and-their-own-folder only-entry-points-import-the-wiring
adapters/http/pets.ts     | export { port } from '../../config.js'                                               | adapters-import-only-core-and-their-own-folder only-entry-points-and-wiring-import-the-settings
config.ts                 | export { line as port } from './adapters/cli/command-line.js'                        | only-entry-points-and-wiring-import-the-command-line
config.ts                 | export { all as port } from './wiring/planted.js'                                    | only-entry-points-import-the-wiring
wiring/planted.ts         | export * from '../service.js'                                                        | wiring-imports-no-entry-point
wiring/planted.ts         | import type Koa from 'koa'; export const all = {} as Koa                             | koa-stays-in-http
wiring/planted.ts         | import type { Router } from '@koa/router'; export const all = {} as Router           | koa-stays-in-http
adapters/node/planted.ts  | export { Container } from 'inversify'                                                | inversify-stays-in-wiring
adapters/memory/pets.ts   | export { MongoClient } from 'mongodb'                                                | mongodb-stays-in-its-adapter
adapters/http/pets.ts     | export { Redis } from 'ioredis'                                                      | ioredis-stays-in-its-adapter
adapters/http/pets.ts     | export { trace } from '@opentelemetry/api'                                          | opentelemetry-stays-in-its-adapter
adapters/http/pets.ts     | export { expect } from 'chai'                                                        | source-imports-only-what-ships
adapters/http/pets.ts     | import status from 'statuses'; export { status }                                     | source-imports-only-what-ships
adapters/http/pets.ts     | export { aPet } from '../../../test/planted.js'                                      | source-imports-no-tests
adapters/http/pets.ts     | export { missing } from './missing.js'                                               | imports-resolve
core/pet.ts               | import type { PetStore } from './ports/pet-store.js'; export type Pet = PetStore     | no-cycles
core/pet.ts               | export type Pet = import('node:crypto').Hash                                         | imports-are-statements
core/pet.ts               | export const pet = (name: string) => import('./' + name)                             | imports-are-statements
main.ts                   | export const home = process.env.HOME                                                 | only-settings-read-the-environment
main.ts                   | export const home = process?.['env']                                                 | only-settings-read-the-environment
main.ts                   | export const { env } = process                                                       | only-settings-read-the-environment
main.ts                   | export const home = globalThis.process.env                                           | only-settings-read-the-environment
main.ts                   | export const { process } = globalThis                                                | only-settings-read-the-environment
main.ts                   | export const settings = [process]                                                    | only-settings-read-the-environment
main.ts                   | export const settings = { process }                                                  | only-settings-read-the-environment
main.ts                   | export { argv } from 'process'                                                       | only-settings-import-process
main.ts                   | export { argv } from 'node:process'                                                  | only-settings-import-process
`

describe('the import rules', function () {
  this.timeout(30_000)

  let root: string

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'petstore-architecture-'))
    symlinkSync(join(process.cwd(), 'node_modules'), join(root, 'node_modules'))
    cpSync('package.json', join(root, 'package.json'))
    write(VALID_TREE)
  })
  afterEach(() => rmSync(root, { recursive: true }))

  it('are followed by the source files', async () => {
    expect(await findArchitectureViolations(process.cwd())).to.deep.equal([])
  })

  it('allow what each folder is for', async () => {
    expect(await findViolatedRules()).to.deep.equal([])
  })

  for (const line of VIOLATIONS.trim().split('\n')) {
    const [file = '', code = '', rules = ''] = line.split('|').map((cell) => cell.trim())
    it(`forbid in ${file}: ${code}`, async () => {
      write({ ...IMPORTED, [`src/${file}`]: code })
      expect(await findViolatedRules()).to.deep.equal(rules.split(' '))
    })
  }

  const places =
    'core core/ports core/use-cases adapters/cli adapters/http adapters/memory adapters/mongo adapters/node adapters/opentelemetry adapters/redis'
  for (const place of [...places.split(' '), 'config.ts', 'wiring', 'main.ts']) {
    it(`fail if src/${place} does not exist`, async () => {
      rmSync(join(root, 'src', place), { recursive: true })
      expect(await findViolatedRules()).to.include('rules-apply-to-files')
    })
  }

  it('fail for a tree without sources', async () => {
    rmSync(join(root, 'src'), { recursive: true })
    expect(await findViolatedRules()).to.deep.equal(['rules-apply-to-files'])
  })

  async function findViolatedRules(): Promise<string[]> {
    const violations = await findArchitectureViolations(root)
    return [...new Set(violations.map(({ rule }) => rule))].toSorted()
  }

  function write(files: Files): void {
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(join(root, dirname(file)), { recursive: true })
      writeFileSync(join(root, file), `${text}\n`)
    }
  }
})
