import { execFile } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { PLAN_NAMES } from '../../src/core/plan.js'
import { readRateLimitFields } from '../support/responses.js'
import { findProgram } from '../support/engines/find-program.js'
import { LIST_MODULES_ON_SIGUSR2, stopAndListLoadedPackages } from '../support/loaded-packages.js'
import type { Ended, ServiceProcess, Settings } from '../support/process.js'
import { endProcesses, runPetstore, startService } from '../support/process.js'
import { skipFor } from '../support/skip.js'

const ANY_PORTS = { PORT: '0', ADMIN_PORT: '0' }
const PASSWORD = 'hunter2'

/** The pets or orders that the largest demo key sees. */
async function list(service: ServiceProcess, path: string): Promise<{ id: number; petId?: number }[]> {
  const { status, json } = await service.send(path, { key: service.keys.enterprise })
  expect(status).to.equal(200)
  return json as { id: number; petId?: number }[]
}

describe('a service without settings', () => {
  let service: ServiceProcess

  before(async () => {
    service = await startService()
  })
  after(endProcesses)

  it('says that its data is in the process', () => {
    expect(service.notice).to.match(/\bdata lives in this process\b/)
  })

  it('prints the URLs of the ports that it chose for PORT=0 and ADMIN_PORT=0', async () => {
    expect(Number(new URL(service.url).port)).to.be.greaterThan(0)
    for (const url of [`${service.url}/readyz`, `${service.adminUrl}/health`, `${service.adminUrl}/metrics`]) {
      expect((await fetch(url)).status).to.equal(200)
    }
  })

  it('writes only JSON to standard output, and says there that it is ready, without a key', () => {
    const lines = service.output.trimEnd().split('\n')
    const ready = lines.map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ msg }) => msg === 'ready')
    expect(ready).to.have.lengthOf(1)
    expect(ready[0]).to.deep.include({ level: 30, apiUrl: service.url, adminUrl: service.adminUrl, mode: 'embedded' })
    expect(service.output).to.not.include('pst_live_')
  })

  it('prints the URL of its docs', async () => {
    const [, url] = /^Docs +(\S+)$/m.exec(service.notice) ?? []
    expect(url).to.equal(`${service.url}/docs`)
    expect(await service.send('/docs')).to.have.property('status', 200)
  })

  it('prints one valid key for each plan, with its limits, which differ', async () => {
    const printed = new Set<string>()
    for (const plan of PLAN_NAMES) {
      const lines = service.notice.split('\n').filter((line) => line.trimStart().startsWith(`${plan} `))
      expect(lines).to.have.length(1)
      const [text = '', minute, day] = /(\d+) \w+ minute, (\d+) \w+ day$/.exec(lines[0] ?? '') ?? []
      printed.add(text)
      const response = await service.send('/v1/pets', { key: service.keys[plan] })
      expect(response.status).to.equal(200)
      const quotas = readRateLimitFields(response)
      expect([quotas['minute']?.quota, quotas['day']?.quota]).to.deep.equal([Number(minute), Number(day)])
    }
    expect(printed).to.have.property('size', PLAN_NAMES.length)
  })

  it('prints a curl command that lists the pets', async function () {
    if (findProgram('curl') === undefined) skipFor(this, 'curl is not installed', 'install curl')
    const [command = ''] = /^ *curl .+$/m.exec(service.notice) ?? []
    const { stdout } = await promisify(execFile)('bash', ['-c', command], { timeout: 5_000, env: { PATH: process.env['PATH'] } })
    const [head, body = ''] = stdout.split('\r\n\r\n')
    expect(head).to.match(/^HTTP\/1\.1 200 OK\r\n/)
    expect(JSON.parse(body)).to.have.length(10)
  })

  it('has ten pets, and five orders for some of them', async () => {
    const pets = await list(service, '/v1/pets')
    const orders = await list(service, '/v1/store/orders')
    expect([pets.length, orders.length]).to.deep.equal([10, 5])
    expect(pets.map(({ id }) => id)).to.include.members(orders.map(({ petId }) => petId))
  })

  it('has different keys from any other process, and rejects the keys of other processes', async () => {
    const other = await startService()
    expect(new Set([...Object.values(other.keys), ...Object.values(service.keys)]).size).to.equal(8)
    expect(await other.send('/v1/pets', { key: service.keys.free })).to.have.property('status', 401)
  })
})

describe('a service in embedded mode', () => {
  after(endProcesses)

  it('loads no package that only distributed mode, the docs or a command needs', async () => {
    const service = await startService({ NODE_OPTIONS: LIST_MODULES_ON_SIGUSR2 })
    await service.send('/v1/pets', { key: service.keys.free })
    const loaded = await stopAndListLoadedPackages(service)
    expect(loaded).to.include('koa')
    for (const name of ['mongodb', 'bson', 'ioredis', 'yaml', 'resolve-path', 'cli-progress']) expect(loaded).to.not.include(name)
  })
})

describe('a service with NODE_ENV=production, STORAGE=memory, SAMPLE_DATA=off, DOCS=off and LOG_LEVEL=trace', () => {
  let service: ServiceProcess

  before(async () => {
    const ofOtherPrograms = { REDIS_HOST: 'cache', LOG_FORMAT: 'json' }
    const settings = { NODE_ENV: 'production', STORAGE: 'memory', SAMPLE_DATA: 'off', DOCS: 'off', LOG_LEVEL: 'trace' }
    service = await startService({ ...settings, ...ofOtherPrograms })
  })
  after(endProcesses)

  it('says that its data is in the process, although variables of other programs are set', async () => {
    expect(service.notice).to.match(/\bdata lives in this process\b/)
  })

  it('has no pets and no orders', async () => {
    expect(await list(service, '/v1/pets')).to.deep.equal([])
    expect(await list(service, '/v1/store/orders')).to.deep.equal([])
  })

  it('neither serves nor mentions the docs', async () => {
    expect(service.notice).to.not.match(/docs/i)
    expect(await service.send('/docs')).to.have.property('status', 404)
  })

  it('logs key IDs and no secret', async () => {
    for (const key of Object.values(service.keys)) {
      const body = { name: key, categoryId: 1 }
      await service.send('/v1/pets', { key })
      await service.send(`/v1/pets/1?key=${key}`, { key, headers: { 'x-api-key': key, cookie: key, referer: key } })
      await service.send(`/v1/${key}`, { key })
      await service.send('/v1/pets', { key, method: 'POST', body })
      await service.send('/v1/pets', { key, method: 'POST', body: { ...body, status: key } })
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

describe('a service with an IPv6 HOST', () => {
  after(endProcesses)

  it('prints a valid URL', async function () {
    const hasIPv6 = Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === '::1'))
    if (!hasIPv6) skipFor(this, 'this machine has no IPv6 loopback address')
    const service = await startService({ HOST: '::1', ADMIN_HOST: '::1' })
    expect(service.url).to.match(/^http:\/\/\[::1\]:\d+$/)
    expect((await fetch(`${service.url}/readyz`)).status).to.equal(200)
  })
})

describe('a start that fails', () => {
  afterEach(endProcesses)

  async function expectFailure(settings: Settings, exitCode: 1 | 2): Promise<Ended['stderr']> {
    const ended = await runPetstore(['serve'], settings)
    expect(ended).to.include({ exitCode, stdout: '' })
    expect(ended.stderr).to.not.include('    at ').and.not.include(PASSWORD)
    return ended.stderr
  }

  for (const setting of ['PORT', 'ADMIN_PORT']) {
    it(`because another process uses ${setting} exits with 1 and one sentence that names the setting and the port`, async () => {
      const other = createServer().listen(0, '127.0.0.1')
      await once(other, 'listening')
      const { port } = other.address() as AddressInfo
      const stderr = await expectFailure({ ...ANY_PORTS, [setting]: String(port) }, 1)
      other.close()
      expect(stderr)
        .to.match(new RegExp(`^[^\\n]*\\b${setting}\\b[^\\n]*\\n$`))
        .and.to.include(`127.0.0.1:${port}`)
    })
  }

  it('because HOST is not an address of the machine exits with 1 and one sentence that names HOST', async () => {
    expect(await expectFailure({ ...ANY_PORTS, HOST: '192.0.2.1' }, 1)).to.match(/^[^\n]*\bHOST\b[^\n]*\n$/)
  })

  it('because of invalid settings exits with 2 and one line for each', async () => {
    const invalid = { PORT: 'http', DOCS: 'yes', LOG_LEVEL: 'loud', DRAIN_DELAY_MS: '1.5' }
    const stderr = await expectFailure(invalid, 2)
    for (const [name, value] of Object.entries(invalid)) {
      const lines = stderr.split('\n').filter((line) => line.includes(`${name} `))
      expect(lines, name).to.have.length(1)
      expect(lines[0]).to.include(JSON.stringify(value))
    }
  })

  it('because of unknown and missing settings exits with 2 and names them, without passwords', async () => {
    const url = `mongodb://petstore:${PASSWORD}@db/pets`
    const stderr = await expectFailure({ MONGODB_URI: url, MONGODB_URL: url }, 2)
    expect(stderr).to.include('did you mean MONGODB_URL?')
    for (const name of ['REDIS_URL', 'CURSOR_SECRET', 'TRUSTED_PROXY_HOPS']) expect(stderr).to.match(new RegExp(`^ +- ${name}\\b`, 'm'))
  })

  it('because NODE_ENV is production without a storage exits with 2 and names the settings', async () => {
    expect(await expectFailure({ NODE_ENV: 'production' }, 2)).to.match(/\bMONGODB_URL and REDIS_URL\b.*\bSTORAGE=memory\b/)
  })
})

describe('the petstore command', () => {
  it('exits with 2 and points to --help for an unknown command', async () => {
    const ended = await runPetstore(['fly'])
    expect(ended).to.include({ exitCode: 2, stdout: '' })
    expect(ended.stderr).to.include('(see petstore --help)')
  })

  it('exits with 0 for --help', async () => {
    expect(await runPetstore(['--help'])).to.include({ exitCode: 0, stderr: '' })
  })
})
