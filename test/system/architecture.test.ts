import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { findArchitectureViolations, type Violation } from '../support/architecture.js'

type Files = Record<string, string>

/** The smallest tree that every import rule is content with. */
const soundTree: Files = {
  'src/core/pet.ts': 'export interface Pet { id: bigint }',
  'src/core/ports/pet-store.ts': "import type { Pet } from '../pet.js'\nexport interface PetStore { get(id: bigint): Pet }",
  'src/core/use-cases/get-pet.ts':
    "import type { PetStore } from '../ports/pet-store.js'\nexport const getPet = (pets: PetStore) => pets.get(1n)",
  'src/adapters/memory/memory-pet-store.ts':
    "import type { PetStore } from '../../core/ports/pet-store.js'\nexport const pets: PetStore = { get: (id) => ({ id }) }",
  'src/adapters/mongo/mongo-connection.ts': "import { MongoClient } from 'mongodb'\nexport const connect = () => new MongoClient('')",
  'src/adapters/node/crypto-secrets.ts':
    "import { randomBytes } from 'node:crypto'\nexport const secrets = { process: () => randomBytes(32) }\nsecrets.process()",
  'src/adapters/redis/redis-client.ts': "import { Redis } from 'ioredis'\nexport const connect = () => new Redis()",
  'src/adapters/http/http-server.ts': "import Koa from 'koa'\nexport const app = () => new Koa()",
  'src/adapters/cli/command-line.ts': 'export const line = (port: number) => process.argv[port]',
  'src/config.ts': "export const port = Number(process.env['PORT'])",
  'src/wiring/container.ts':
    "import { Container } from 'inversify'\nimport { app } from '../adapters/http/http-server.js'\nimport { pets } from '../adapters/memory/memory-pet-store.js'\nimport type { line } from '../adapters/cli/command-line.js'\nimport { port } from '../config.js'\nexport const all = { app, pets, Container, port, line: {} as typeof line }",
  'src/main.ts':
    "import { line } from './adapters/cli/command-line.js'\nimport { all } from './wiring/container.js'\nprocess.exitCode = line(all.port) ? 0 : 1",
}

describe('the import rules', () => {
  let root: string

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'petstore-architecture-'))
    symlinkSync(join(process.cwd(), 'node_modules'), join(root, 'node_modules'))
    cpSync('package.json', join(root, 'package.json'))
    write(soundTree)
  })

  afterEach(() => rmSync(root, { recursive: true }))

  it('hold in the source tree', async () => {
    expect(await findArchitectureViolations(process.cwd())).to.deep.equal([])
  })

  it('allow what each part is there for', async () => {
    expect(await findArchitectureViolations(root)).to.deep.equal([])
  })

  forbid('core a type of a node: module', 'src/core/pet.ts', "import type { Hash } from 'node:crypto'\nexport type Pet = Hash", [
    'core-imports-only-core',
  ])
  forbid('core a package', 'src/core/pet.ts', "import { z } from 'zod'\nexport type Pet = z.ZodType", ['core-imports-only-core'])
  forbid('core an adapter', 'src/core/quota.ts', "export * from '../adapters/memory/memory-pet-store.js'", ['core-imports-only-core'])
  forbid('core the settings', 'src/core/quota.ts', "export { port } from '../config.js'", [
    'core-imports-only-core',
    'only-entry-points-and-wiring-import-the-settings',
  ])
  forbid(
    'http the MongoDB adapter',
    'src/adapters/http/pets.ts',
    "import type { M } from '../mongo/mongo-pet-store.js'\nexport type N = M",
    ['adapters-import-only-core-and-their-own-folder'],
  )
  forbid('http the Redis adapter', 'src/adapters/http/pets.ts', "export const later = () => import('../redis/redis-quota-store.js')", [
    'adapters-import-only-core-and-their-own-folder',
  ])
  for (const folder of ['memory', 'node', 'mongo', 'redis']) {
    forbid(`${folder} the HTTP adapter`, `src/adapters/${folder}/planted.ts`, "export { app } from '../http/http-server.js'", [
      'adapters-import-only-core-and-their-own-folder',
    ])
  }
  forbid('an adapter a file that no folder owns', 'src/adapters/http/pets.ts', "export { x } from '../shared.js'", [
    'adapters-import-only-core-and-their-own-folder',
  ])
  forbid(
    'an adapter the container',
    'src/adapters/http/pets.ts',
    "import type { all } from '../../wiring/container.js'\nexport type A = typeof all",
    ['adapters-import-only-core-and-their-own-folder', 'only-entry-points-import-the-wiring'],
  )
  forbid('an adapter the settings', 'src/adapters/http/pets.ts', "export { port } from '../../config.js'", [
    'adapters-import-only-core-and-their-own-folder',
    'only-entry-points-and-wiring-import-the-settings',
  ])
  forbid('the settings the command line', 'src/config.ts', "export { line as port } from './adapters/cli/command-line.js'", [
    'only-entry-points-and-wiring-import-the-command-line',
  ])
  forbid('the settings the wiring', 'src/config.ts', "export { all as port } from './wiring/planted.js'", [
    'only-entry-points-import-the-wiring',
  ])
  forbid('the wiring an entry point', 'src/wiring/planted.ts', "export * from '../service.js'", ['wiring-imports-no-entry-point'])
  forbid('Koa outside http', 'src/wiring/planted.ts', "import type Koa from 'koa'\nexport const all = {} as Koa", ['koa-stays-in-http'])
  forbid(
    "Koa's router outside http",
    'src/wiring/planted.ts',
    "import type { Router } from '@koa/router'\nexport const all = {} as Router",
    ['koa-stays-in-http'],
  )
  forbid('Inversify outside the wiring', 'src/adapters/node/planted.ts', "export { Container } from 'inversify'", [
    'inversify-stays-in-wiring',
  ])
  forbid('the MongoDB driver outside its adapter', 'src/adapters/memory/pets.ts', "export { MongoClient } from 'mongodb'", [
    ...unresolved('mongodb'),
    'mongodb-stays-in-its-adapter',
  ])
  forbid('ioredis outside its adapter', 'src/adapters/http/pets.ts', "export { Redis } from 'ioredis'", [
    ...unresolved('ioredis'),
    'ioredis-stays-in-its-adapter',
  ])
  forbid('a development package', 'src/adapters/http/pets.ts', "export { expect } from 'chai'", ['source-imports-only-what-ships'])
  forbid('an undeclared package', 'src/adapters/http/pets.ts', "import status from 'statuses'\nexport { status }", [
    'source-imports-only-what-ships',
  ])
  forbid('a test', 'src/adapters/http/pets.ts', "export { aPet } from '../../../test/planted.js'", ['source-imports-no-tests'])
  forbid('a file that is not there', 'src/adapters/http/pets.ts', "export { gone } from './gone.js'", ['imports-resolve'])
  forbid('a cycle, even of types', 'src/core/pet.ts', "import type { PetStore } from './ports/pet-store.js'\nexport type Pet = PetStore", [
    'no-cycles',
  ])
  forbid('an import hidden in a type', 'src/core/pet.ts', "export type Pet = import('node:crypto').Hash", ['imports-are-statements'])
  forbid('an import of a computed name', 'src/core/pet.ts', 'export const pet = (name: string) => import(`./${name}.js`)', [
    'imports-are-statements',
  ])

  for (const reading of [
    'export const home = process.env.HOME',
    "export const home = process?.['env']",
    'export const { env } = process',
    'export const home = globalThis.process.env',
    'export const { process } = globalThis',
    'export const settings = [process]',
    'export const settings = { process }',
  ]) {
    forbid(`the environment outside config.ts: ${reading}`, 'src/main.ts', reading, ['only-settings-read-the-environment'])
  }
  for (const name of ['process', 'node:process']) {
    forbid(`an import of ${name} outside config.ts`, 'src/main.ts', `export { argv } from '${name}'`, ['only-settings-import-process'])
  }

  for (const place of [
    'src/core',
    'src/core/ports',
    'src/core/use-cases',
    'src/adapters/cli',
    'src/adapters/http',
    'src/adapters/memory',
    'src/adapters/mongo',
    'src/adapters/node',
    'src/adapters/redis',
    'src/config.ts',
    'src/wiring',
    'src/main.ts',
  ]) {
    it(`refuse to speak of ${place} when it holds nothing`, async () => {
      rmSync(join(root, place), { recursive: true })
      expect(rulesIn(await findArchitectureViolations(root))).to.include('rules-speak-of-something')
    })
  }

  it('refuse a tree without sources', async () => {
    rmSync(join(root, 'src'), { recursive: true })
    expect(rulesIn(await findArchitectureViolations(root))).to.deep.equal(['rules-speak-of-something'])
  })

  function forbid(what: string, file: string, text: string, rules: string[]): void {
    it(`forbid ${what}`, async () => {
      write({ ...neighbours, [file]: text })
      expect(rulesIn(await findArchitectureViolations(root))).to.deep.equal(rules)
    })
  }

  function write(files: Files): void {
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(join(root, dirname(file)), { recursive: true })
      writeFileSync(join(root, file), `${text}\n`)
    }
  }
})

/** What the planted files import, so that a violation is one of direction and not of a missing file. */
const neighbours: Files = {
  'src/adapters/mongo/mongo-pet-store.ts': 'export type M = 1',
  'src/adapters/redis/redis-quota-store.ts': 'export type R = 1',
  'src/adapters/shared.ts': 'export const x = 1',
  'src/service.ts': 'export const serve = 1',
  'src/wiring/planted.ts': 'export const all = 1',
  'test/planted.ts': 'export const aPet = 1',
}

/** Until a later adapter brings the package, its import does not resolve either. */
function unresolved(name: string): string[] {
  return existsSync(join('node_modules', name)) ? [] : ['imports-resolve']
}

function rulesIn(violations: Violation[]): string[] {
  return [...new Set(violations.map(({ rule }) => rule))].sort()
}
