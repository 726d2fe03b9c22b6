import { execFile } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { formatStartUpNotice } from '../../src/adapters/cli/start-up-notice.js'
import { PLAN_NAMES } from '../../src/core/plan.js'
import { somePlans } from '../contracts/builders.js'
import { rateLimitFields } from '../support/responses.js'
import type { TestResponse } from '../support/api.js'
import { findProgram } from '../support/engines/find-program.js'
import type { ServiceProcess } from '../support/process.js'
import { endProcesses, runPetstore, startService } from '../support/process.js'
import { skipFor } from '../support/skip.js'

const run = promisify(execFile)

describe('the service, started with nothing but Node', () => {
  let service: ServiceProcess

  before(async () => {
    service = await startService()
  })
  after(endProcesses)

  it('says that its data lives in this process', () => {
    expect(service.notice).to.match(/\ball data lives in this process\b/)
  })

  it('prints the port that it took for PORT=0, and for ADMIN_PORT=0', async () => {
    expect(Number(new URL(service.url).port)).to.be.greaterThan(0)
    expect(await statusOf(service.send('/readyz'))).to.equal(200)
    expect((await fetch(`${service.adminUrl}/health`)).status).to.equal(200)
    expect((await fetch(`${service.adminUrl}/metrics`)).status).to.equal(200)
  })

  it('prints the address of the docs', async () => {
    const [, address] = /^Docs +(\S+)$/m.exec(service.notice) ?? []
    expect(address).to.equal(`${service.url}/docs`)
    expect(await statusOf(service.send('/docs'))).to.equal(200)
  })

  for (const plan of PLAN_NAMES) {
    it(`prints one key of the plan ${plan}, which works within the limits beside it`, async () => {
      const lines = service.notice.split('\n').filter((line) => line.trimStart().startsWith(`${plan} `))
      expect(lines).to.have.length(1)
      const [, minute, day] = /(\d+) per minute, (\d+) per day$/.exec(lines[0] ?? '') ?? []

      const answer = await service.send('/v1/pets', { key: service.keys[plan] })
      expect(answer.status).to.equal(200)
      const quotas = rateLimitFields(answer)
      expect([quotas['minute']?.quota, quotas['day']?.quota]).to.deep.equal([Number(minute), Number(day)])
    })
  }

  it('gives enterprise limits of its own', () => {
    const limits = [...service.notice.matchAll(/\d+ per minute, \d+ per day$/gm)].map(([text]) => text)
    expect(new Set(limits)).to.have.property('size', PLAN_NAMES.length)
  })

  it('prints a curl that lists the pets as it is pasted', async function () {
    if (findProgram('curl') === undefined) skipFor(this, 'curl is not installed', 'install curl')
    const [command = ''] = /^ *curl .+$/m.exec(service.notice) ?? []
    const { stdout } = await run('bash', ['-c', command], { timeout: 5_000, env: { PATH: process.env['PATH'] } })
    const [head, body = ''] = stdout.split('\r\n\r\n')
    expect(head).to.match(/^HTTP\/1\.1 200 OK\r\n/)
    expect(JSON.parse(body)).to.have.length(10)
  })

  it('has ten pets and five orders for them to look at', async () => {
    const pets = await listed(service, '/v1/pets')
    const orders = await listed(service, '/v1/store/orders')
    expect(pets).to.have.length(10)
    expect(orders).to.have.length(5)
    expect(pets.map(({ id }) => id)).to.include.members(orders.map(({ petId }) => petId))
  })

  it('gives out fresh keys at every start, and the old ones end with the process', async () => {
    const next = await startService()
    expect(Object.values(next.keys)).to.not.have.any.members(Object.values(service.keys))
    expect(await statusOf(next.send('/v1/pets', { key: service.keys.free }))).to.equal(401)
  })
})

describe('the service, started with settings', () => {
  afterEach(endProcesses)

  it('is empty with SAMPLE_DATA=off', async () => {
    const service = await startService({ SAMPLE_DATA: 'off' })
    expect(await listed(service, '/v1/pets')).to.deep.equal([])
    expect(await listed(service, '/v1/store/orders')).to.deep.equal([])
  })

  it('neither has nor mentions the docs with DOCS=off', async () => {
    const service = await startService({ DOCS: 'off' })
    expect(service.notice).to.not.match(/docs/i)
    expect(await statusOf(service.send('/docs'))).to.equal(404)
  })

  it('keeps all data in this process in production with STORAGE=memory, and ignores variables of other programs', async () => {
    const service = await startService({ NODE_ENV: 'production', STORAGE: 'memory', REDIS_HOST: 'cache', LOG_FORMAT: 'json' })
    expect(service.notice).to.match(/\ball data lives in this process\b/)
    expect(await statusOf(service.send('/v1/pets', { key: service.keys.free }))).to.equal(200)
  })

  it('prints an address that can be called when it listens on an IPv6 one', async function () {
    if (!hasIPv6()) skipFor(this, 'this machine has no IPv6 loopback address')
    const service = await startService({ HOST: '::1', ADMIN_HOST: '::1' })
    expect(service.url).to.match(/^http:\/\/\[::1\]:\d+$/)
    expect((await fetch(`${service.url}/readyz`)).status).to.equal(200)
  })

  it('names keys in its log by their ids, and no secret stands in any line of it', async () => {
    const service = await startService({ LOG_LEVEL: 'trace' })
    for (const key of Object.values(service.keys)) {
      await service.send('/v1/pets', { key })
      await service.send(`/v1/pets/1?key=${key}`, { key, headers: { 'x-api-key': key, cookie: key, referer: key } })
      await service.send(`/v1/${key}`, { key })
      await service.send('/v1/pets', { key, method: 'POST', body: { name: key, categoryId: 1 } })
      await service.send('/v1/pets', { key, method: 'POST', body: { name: key, status: key } })
      await service.send('/v1/pets', { key, method: 'POST', body: `{"name":"${key}`, headers: { 'content-type': 'application/json' } })
      await service.send('/v1/pets', { key: `${key}x` })
      await service.send('/v1/pets', { headers: { authorization: [`Bearer ${key}`, `Bearer ${key}`] } })
    }
    await service.stop()

    const log = service.logLines.map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(new Set(log.flatMap(({ keyId }) => keyId ?? []))).to.have.property('size', PLAN_NAMES.length)
    for (const key of Object.values(service.keys)) expect(service.logLines.join('\n')).to.not.include(key)
  })
})

describe('a start that cannot succeed', () => {
  afterEach(endProcesses)

  for (const setting of ['PORT', 'ADMIN_PORT']) {
    it(`because the port of ${setting} is taken is refused in one sentence that names it`, async () => {
      const other = createServer().listen(0, '127.0.0.1')
      await once(other, 'listening')
      const { port } = other.address() as AddressInfo
      const ended = await runPetstore(['serve'], { PORT: '0', ADMIN_PORT: '0', [setting]: String(port) })
      other.close()

      expect(ended).to.include({ exitCode: 1, stdout: '' })
      expect(ended.stderr).to.match(/^[^\n]+\n$/)
      expect(ended.stderr)
        .to.include(`127.0.0.1:${port}`)
        .and.match(new RegExp(`\\b${setting}\\b`))
    })
  }

  it('because HOST is no address of this machine is refused in one sentence that names HOST', async () => {
    const ended = await runPetstore(['serve'], { PORT: '0', ADMIN_PORT: '0', HOST: '192.0.2.1' })
    expect(ended).to.include({ exitCode: 1, stdout: '' })
    expect(ended.stderr)
      .to.match(/^[^\n]+\n$/)
      .and.match(/\bHOST\b/)
  })

  it('because several settings are wrong tells of them all together', async () => {
    const wrong = { PORT: 'http', DOCS: 'yes', LOG_LEVEL: 'loud', DRAIN_DELAY_MS: '1.5' }
    const ended = await runPetstore(['serve'], wrong)
    expect(ended).to.include({ exitCode: 2, stdout: '' })
    for (const [name, value] of Object.entries(wrong)) {
      const lines = ended.stderr.split('\n').filter((line) => line.includes(`${name} `))
      expect(lines, name).to.have.length(1)
      expect(lines[0]).to.include(JSON.stringify(value))
    }
    expect(ended.stderr).to.not.include('    at ')
  })

  it('because the name of a setting is misspelled suggests that setting', async () => {
    const ended = await runPetstore(['serve'], { MONGODB_URI: 'mongodb://petstore:hunter2@db/pets' })
    expect(ended).to.include({ exitCode: 2, stdout: '' })
    expect(ended.stderr)
      .to.match(/\bMONGODB_URI is not a setting; did you mean MONGODB_URL\?\n$/)
      .and.not.include('hunter2')
  })

  it('because NODE_ENV is production without a choice of storage names both choices', async () => {
    const ended = await runPetstore(['serve'], { NODE_ENV: 'production' })
    expect(ended).to.include({ exitCode: 2, stdout: '' })
    expect(ended.stderr).to.match(/^ {2}- NODE_ENV=production .*\bMONGODB_URL and REDIS_URL\b.*\bSTORAGE=memory\b/m)
  })

  it('because it has MongoDB without Redis, or Redis without MongoDB, says so, and repeats no password', async () => {
    for (const [there, missing, url] of [
      ['MONGODB_URL', 'REDIS_URL', 'mongodb://petstore:hunter2@db/pets'],
      ['REDIS_URL', 'MONGODB_URL', 'redis://:hunter2@cache'],
    ] as const) {
      const ended = await runPetstore(['serve'], { [there]: url, CURSOR_SECRET: 'hunter2'.repeat(5), TRUSTED_PROXY_HOPS: '0' })
      expect(ended).to.include({ exitCode: 2, stdout: '' })
      expect(ended.stderr)
        .to.match(new RegExp(`^ {2}- ${missing} must be set if ${there}\\b.*\\n$`, 'm'))
        .and.not.include('hunter2')
    }
  })

  it('because CURSOR_SECRET and TRUSTED_PROXY_HOPS are missing names both, and repeats no password', async () => {
    const ended = await runPetstore(['serve'], { MONGODB_URL: 'mongodb://petstore:hunter2@db/pets', REDIS_URL: 'redis://cache' })
    expect(ended).to.include({ exitCode: 2, stdout: '' })
    expect(ended.stderr)
      .to.match(/^ {2}- CURSOR_SECRET must be set if MONGODB_URL\b/m)
      .and.match(/^ {2}- TRUSTED_PROXY_HOPS must be set if MONGODB_URL\b/m)
      .and.not.include('hunter2')
  })
})

describe('the start-up notice of a service on MongoDB and Redis', () => {
  const notice = formatStartUpNotice({
    apiUrl: 'http://127.0.0.1:1001',
    adminUrl: 'http://127.0.0.1:1002',
    hasDocs: true,
    plans: somePlans(),
    demoKeys: [],
  })

  it('says where the data lives, and that all replicas share it', () => {
    expect(notice)
      .to.match(/\bpets, orders and API keys live in MongoDB\b/)
      .and.match(/\bquotas in Redis, shared by all replicas\b/)
    expect(notice).to.not.match(/\bembedded\b/)
  })

  it('has no key, and says how to get one and where it belongs', () => {
    expect(notice).to.not.match(/pst_live_|Demo keys/)
    expect(notice).to.include('petstore keys issue --plan free --owner <name>')
    expect(notice).to.include("curl -i -H 'Authorization: Bearer <API key>' http://127.0.0.1:1001/v1/pets")
  })

  it('says where the service, its docs and its admin port are', () => {
    for (const url of ['1001/v1\n', '1001/docs\n', '1002/metrics', '1002/health\n']) expect(notice).to.include(`http://127.0.0.1:${url}`)
  })
})

describe('the petstore command', () => {
  afterEach(endProcesses)

  for (const args of [[], ['fly'], ['serve', '--fast'], ['serve', 'now'], ['openapi', '--format', 'xml']]) {
    it(`refuses '${['petstore', ...args].join(' ')}' as wrong usage and shows how it is used`, async () => {
      const ended = await runPetstore(args)
      expect(ended).to.include({ exitCode: 2, stdout: '' })
      expect(ended.stderr).to.include('Usage: petstore')
    })
  }

  it('tells of its commands with --help', async () => {
    const ended = await runPetstore(['--help'])
    expect(ended).to.include({ exitCode: 0, stderr: '' })
    expect(ended.stdout)
      .to.match(/^ +serve\b/m)
      .and.match(/^ +keys\b/m)
      .and.match(/^ +seed\b/m)
      .and.match(/^ +openapi\b/m)
      .and.match(/^Exit codes: 0 success, 1 failure, 2 invalid usage or settings\.$/m)
  })

  it('tells of the formats with openapi --help', async () => {
    const ended = await runPetstore(['openapi', '--help'])
    expect(ended).to.include({ exitCode: 0, stderr: '' })
    expect(ended.stdout).to.include('"json"').and.include('"yaml"')
  })
})

function hasIPv6(): boolean {
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === '::1'))
}

async function statusOf(answer: Promise<TestResponse>): Promise<number> {
  return (await answer).status
}

/** The rows of a listing, asked with the key of the largest plan. */
async function listed(service: ServiceProcess, path: string): Promise<{ id: number; petId?: number }[]> {
  const { status, json } = await service.send(path, { key: service.keys.enterprise })
  expect(status).to.equal(200)
  return json as { id: number; petId?: number }[]
}
