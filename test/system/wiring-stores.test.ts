import type { Document } from 'mongodb'
import { expect } from 'chai'
import type { AuditedChange } from '../../src/adapters/cli/api-key-admin.js'
import { CryptoApiKeySecrets } from '../../src/adapters/node/crypto-api-key-secrets.js'
import { readConfig } from '../../src/config.js'
import type { TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import type { RedisDatabase } from '../support/engines/redis-engine.js'
import { aRedisDatabase } from '../support/engines/redis-engine.js'
import type { FakeMongo } from '../support/fake-mongo.js'
import { startFakeMongo } from '../support/fake-mongo.js'
import type { Settings } from '../support/process.js'
import { endProcesses, issueKey, runPetstore, startService } from '../support/process.js'
import { sharedSettings } from '../support/replicas.js'
import { expectError, readQuotaHeaders } from '../support/responses.js'
import { until, within } from '../support/until.js'
import { withApi } from '../support/api.js'
import { PREFIX } from '../support/redis-replica.js'

/** Much longer than a command takes. */
const AMPLE_MS = 15_000

/** Nothing listens there. */
const NO_REDIS = 'redis://127.0.0.1:1'

const plans = { ...readConfig({}).plans, failedAuthenticationsPerMinute: 3 }

describe('the process with MongoDB but without Redis', function () {
  this.timeout(20_000)
  let mongo: FakeMongo
  let settings: Settings

  beforeEach(async () => {
    mongo = await startFakeMongo()
    settings = sharedSettings(mongo, NO_REDIS)
  })
  afterEach(async () => {
    await endProcesses()
    await mongo.close()
  })

  it('becomes ready only after it has waited for Redis, stays ready without it, and closes MongoDB at its end', async () => {
    const service = await startService(settings)
    const { key } = await issueKey(settings)
    expect((await service.send('/readyz')).status).to.equal(200)
    const pet = { name: 'Rex', categoryId: 7 }
    expect((await service.send('/v1/pets', { method: 'POST', key, body: pet })).status).to.equal(201)
    const write = mongo.received('insert').find(({ insert }) => insert === 'pets')
    expect(pickTimeouts(write ?? {})).to.deep.equal({ maxTimeMS: 1_500, wtimeout: 1_000 })
    const health = await fetch(`${service.adminUrl}/health`)
    expect(health.status).to.equal(200)
    expect(await health.json()).to.deep.include({ status: 'ok', ready: true, dependencies: { mongodb: 'up', redis: 'down' } })

    service.signal('SIGTERM')
    const { exitCode, stdout } = await service.ended
    expect(exitCode).to.equal(0)
    expect(stdout.indexOf('Redis is unavailable')).to.be.within(0, stdout.indexOf('"msg":"ready"'))
    expect(openSessions(mongo)).to.deep.equal([])
  })

  it('reports MongoDB as up while a slow request uses the only connection of the pool', async () => {
    const { key } = await issueKey(settings)
    const service = await startService({ ...settings, MONGODB_URL: `${settings['MONGODB_URL']}?maxPoolSize=1` })
    const find = mongo.hold('find')
    const response = service.send('/v1/pets', { key })
    await until('a lookup is in flight', () => find.heldCount === 1)
    const health = await fetch(`${service.adminUrl}/health`)
    expect(await health.json()).to.deep.include({ dependencies: { mongodb: 'up', redis: 'down' } })
    expectError(await response, 503, 'service_unavailable')
    find.open()
  })

  it('gives each write of petstore seed a timeout of one minute, and closes MongoDB and Redis when it is done', async () => {
    const seed = ['seed', '--pets', '3', '--orders', '2']
    const { exitCode, stderr } = await within(AMPLE_MS, 'the command ends', runPetstore(seed, settings))
    expect(exitCode, stderr).to.equal(0)
    const writes = mongo.received('insert').filter(({ insert }) => insert !== 'counters')
    const aMinute = { maxTimeMS: 60_000, wtimeout: 59_500 }
    expect(writes.map((write) => [write['insert'], pickTimeouts(write)])).to.deep.equal([
      ['pets', aMinute],
      ['orders', aMinute],
    ])
    expect(openSessions(mongo)).to.deep.equal([])
  })

  it('closes MongoDB and Redis at the end of a command that fails', async () => {
    const show = ['keys', 'show', `key_${'0'.repeat(16)}`]
    const { exitCode } = await within(AMPLE_MS, 'the command ends', runPetstore(show, settings))
    expect(exitCode).to.equal(1)
    expect(openSessions(mongo)).to.deep.equal([])
  })
})

describe('failedAuthenticationsPerMinute of the plans file', () => {
  it('is the failure limit if all data is in the process', () =>
    withApi({ config: { plans } }, async (api) => {
      for (const remaining of [2, 1, 0]) await expectFailure(api, remaining)
      await expectLockOut(api)
    }))
})

describe('the process with MongoDB and Redis', function () {
  this.timeout(20_000)
  let redis: RedisDatabase
  let mongo: FakeMongo

  before(async function () {
    redis = await aRedisDatabase(this)
  })
  beforeEach(async () => {
    mongo = await startFakeMongo()
  })
  afterEach(() => mongo.close())
  after(async () => {
    await endProcesses()
    await redis?.release()
  })

  it('shares the failure limit of the plans file with all replicas', async () => {
    const distributed = { mongodbUrl: mongo.url, redisUrl: redis.url, redisPrefix: PREFIX }
    const cursorSecrets = ['one of 32 bytes or more as it must be'] as const
    const options = { config: { plans, distributed, cursorSecrets } }
    const replicas = [await startApi(options), await startApi(options)] as const
    try {
      await expectFailure(replicas[0], 2)
      await expectFailure(replicas[1], 1)
      await expectFailure(replicas[0], 0)
      for (const replica of replicas) await expectLockOut(replica)
    } finally {
      for (const replica of replicas) await replica.stop()
    }
  })

  it('prints no secret and no hash except the secret that it issues, and no log line except one for each change of a key, whatever LOG_LEVEL is', async () => {
    const settings = { ...sharedSettings(mongo, redis.url), LOG_LEVEL: 'trace' }
    const issued = await runPetstore(['keys', 'issue', '--plan', 'free', '--owner', 'Acme', '--json'], settings)
    const { key: secret, keyId } = JSON.parse(issued.stdout) as { key: string; keyId: string }
    const others = [['list'], ['plan', keyId, 'pro']]
    const printed = [issued, ...(await Promise.all(others.map((args) => runPetstore(['keys', ...args], settings))))]

    const audited = printed.map(({ stderr }) =>
      stderr.split('\n').flatMap((line) => (line === '' ? [] : (JSON.parse(line) as AuditedChange))),
    )
    const [change, ...rest] = audited.flat()
    expect(audited.map(({ length }) => length)).to.deep.equal([1, 0, 1])
    expect(change).to.deep.include({ level: 30, msg: 'API key issued', keyId, owner: 'Acme', plan: 'free' }).and.have.property('time')
    expect(rest).to.have.lengthOf(1)
    expect(rest[0]).to.deep.include({ msg: 'plan of API key changed', keyId, plan: 'pro' })

    const hash = new CryptoApiKeySecrets().hash(secret) ?? ''
    expect(mongo.received('insert')[0]?.['documents'][0]).to.include({ secretHash: hash })
    for (const { exitCode, stdout, stderr } of printed) {
      expect(exitCode).to.equal(0)
      expect(stderr).to.not.include(hash).and.not.include(secret)
      expect(stdout)
        .to.include(keyId)
        .and.to.not.include(hash)
        .and.to.not.match(/"level":/)
    }
  })
})

async function expectFailure(api: TestApi, remaining: number): Promise<void> {
  const response = await api.send('/v1/pets', { key: 'rubbish' })
  expectError(response, 401, 'invalid_api_key')
  expect(readQuotaHeaders(response)).to.include({ limit: 3, remaining })
}

async function expectLockOut(api: TestApi): Promise<void> {
  expectError(await api.send('/v1/pets', { key: 'rubbish' }), 429, 'too_many_failed_authentications')
}

/** The sessions of queries and writes that no client has ended. */
function openSessions(mongo: FakeMongo): string[] {
  const toText = ({ id }: Document) => String(id.toString('hex'))
  const used = ['find', 'findAndModify', 'insert', 'aggregate'].flatMap((name) => mongo.received(name)).map(({ lsid }) => toText(lsid))
  const ended = mongo.received('endSessions').flatMap(({ endSessions }) => (endSessions as Document[]).map(toText))
  expect(used, 'queries and writes').to.not.be.empty
  return used.filter((session) => !ended.includes(session))
}

function pickTimeouts({ maxTimeMS, writeConcern }: Document): Document {
  return { maxTimeMS, wtimeout: writeConcern?.wtimeout }
}
