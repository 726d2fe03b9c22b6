import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { getContainerRuntimeClient } from 'testcontainers'
import { findImage, RUN_LABEL, startContainer } from '../support/engines/docker.js'
import { pingMongo, withMongo } from '../support/engines/mongo-client.js'
import type { MongoDatabase } from '../support/engines/mongo-engine.js'
import { aMongoDatabase, anOwnMongo, initiateReplicaSet, mongoReplicaSet } from '../support/engines/mongo-engine.js'
import { withDatabase } from '../support/engines/mongo-url.js'
import { firstAvailable, NoEngine, shareServer } from '../support/engines/no-engine.js'
import type { OwnEngine } from '../support/engines/own-engine.js'
import { untilItResponds } from '../support/engines/own-engine.js'
import { withRedis } from '../support/engines/redis-client.js'
import { anOwnRedis, withDatabaseNumber } from '../support/engines/redis-engine.js'
import { makeHelloResponse, isHello, startMongoStub } from '../support/mongo-stub.js'
import { skipFor } from '../support/skip.js'
import { until, within } from '../support/until.js'

/** Containers start and stop in a second or two each. */
const TEST_TIMEOUT_MS = 60_000
const PING_MS = 500
const NO_ENGINES = { DOCKER_HOST: 'unix:///nowhere', PATH: '/nowhere', MONGODB_URL: '', REDIS_URL: '', MONGODB_IMAGE: '', REDIS_IMAGE: '' }

describe('the engines of a test run', function () {
  this.timeout(TEST_TIMEOUT_MS)

  let folder: string
  const children = new Set<ChildProcess>()

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'petstore-engines-test-'))
  })

  after(() => {
    for (const child of children) child.kill('SIGKILL')
    rmSync(folder, { recursive: true })
  })

  it('are skipped where there are none, with the reason and with instructions in the last lines', async () => {
    const { output, lastLine, exitCode } = await finishRun(DATABASE_SUITES, { ...NO_ENGINES, REQUIRE_ENGINES: '' })
    expect(output).to.match(/SKIPPED: MongoDB .*: Docker does not respond at DOCKER_HOST, which is unix:\/\/\/nowhere\n/)
    expect(output).to.match(/SKIPPED: Redis .*: Docker does not respond at DOCKER_HOST, .*; redis-server is not installed\n/)
    expect(output).to.match(/\n2 of 2 tests did not run\.\nTo run 2 of them: run scripts\/set-up-engines\.sh .*\n.*\n$/)
    expect({ lastLine, exitCode }).to.deep.equal({ lastLine: '0 passed, 0 failed, 2 skipped', exitCode: 0 })
  })

  describe('whose URLs are configured', () => {
    let mongo: MongoDatabase
    let redis: OwnEngine
    let output: string

    before(async function () {
      mongo = await aMongoDatabase(this)
      redis = await anOwnRedis(this)
      await withRedis(withDatabaseNumber(redis.url, 1), (client) => client.set('data', 'of another user'))
      const run = await finishRun(DATABASE_SUITES, { ...NO_ENGINES, MONGODB_URL: `${mongo.url}?appName=planted`, REDIS_URL: redis.url })
      expect(run.lastLine).to.equal('2 passed, 0 failed, 0 skipped')
      output = run.output
    })

    after(async () => {
      await mongo?.drop()
      await redis?.stop()
    })

    it('are used with their options, and each suite gets its own database', () => {
      expect(output).to.match(/^MongoDB mongodb:\S+\/petstore_test_[0-9a-f]{12}\?appName=planted$/m)
      expect(output).to.not.include(new URL(mongo.url).pathname)
    })

    it('keep the data of other users', async () => {
      expect(output).to.include(`Redis ${redis.url}/2\n`)
      expect(await withRedis(withDatabaseNumber(redis.url, 1), (client) => client.get('data'))).to.equal('of another user')
    })

    it('do not keep the data that suites leave behind', async () => {
      const [name] = /petstore_test_[0-9a-f]{12}/.exec(output) ?? []
      const { databases } = await withMongo(mongo.url, (client) => client.db().admin().listDatabases())
      expect(databases.map((database) => database.name)).to.not.include(name)
      expect(await withRedis(withDatabaseNumber(redis.url, 2), (client) => client.dbsize())).to.equal(0)
    })
  })

  it('do not replace a server whose URL is configured and that does not respond', async () => {
    process.env['PLANTED_URL'] = 'redis://127.0.0.1:1'
    const start = async () => Promise.reject(new Error('must not be started'))
    const error = await getError(shareServer('PLANTED_URL', ping, start)())
    delete process.env['PLANTED_URL']
    expect(error).to.be.an('error').with.property('message', 'The server of PLANTED_URL does not respond')
    expect(error).to.not.be.an.instanceOf(NoEngine)
  })

  describe('in Docker', () => {
    const choice = { variable: 'PLANTED_IMAGE', official: 'mongo:8', recipe: 'mongodb-wire' } as const
    const dockerWith = (pattern: RegExp) => (image: string) => Promise.resolve(pattern.test(image))

    afterEach(() => delete process.env['PLANTED_IMAGE'])

    it('run from the official image, or else from the locally built one, whose name contains the hash of its recipe', async () => {
      expect(await findImage(choice, dockerWith(/./))).to.equal('mongo:8')
      expect(await findImage(choice, dockerWith(/^petstore-test/))).to.match(/^petstore-test\/mongodb-wire:[0-9a-f]{12}$/)
      expect(await getError(findImage(choice, dockerWith(/^$/)))).to.be.an.instanceOf(NoEngine)
    })

    it('fail if the configured image is unavailable, and do not run from another image', async () => {
      process.env['PLANTED_IMAGE'] = 'mongo:7'
      expect(await findImage(choice, dockerWith(/./))).to.equal('mongo:7')
      const error = await getError(findImage(choice, dockerWith(/^mongo:8$/)))
      expect(error).to.be.an('error').with.property('message', 'PLANTED_IMAGE is mongo:7, but Docker does not have this image')
      expect(error).to.not.be.an.instanceOf(NoEngine)
      const withoutDocker = await getError(findImage(choice, async () => Promise.reject(new NoEngine('planted'))))
      expect(withoutDocker).to.be.an('error').with.property('message', 'PLANTED_IMAGE is mongo:7, but Docker does not respond')
      expect(withoutDocker).to.not.be.an.instanceOf(NoEngine)
    })

    it('fail at once, with the end of the log, if the container exits', async function () {
      await (await anOwnMongo(this)).stop()
      const image = await findImage({ ...choice, variable: 'MONGODB_IMAGE' })
      const plan = { image, readyLine: /never printed/, innerPort: () => 1, command: () => ['--no-such-option'] }
      const error = await getError(within(TEST_TIMEOUT_MS / 2, 'the start fails', startContainer(plan)))
      expect(error).to.be.an('error').with.property('message').that.includes('the end of its log:').and.includes('no-such-option')
    })
  })

  describe('are removed', () => {
    let first: Run
    let second: Run
    let third: Run

    before(async function () {
      await (await anOwnMongo(this)).stop()
      ;[first, second, third] = await Promise.all([startRun(WAIT_FOREVER), startRun(WAIT_FOREVER), startRun(WAIT_FOREVER)])
    })

    it('when the run gets SIGTERM, but not those of other runs', async () => {
      first.child.kill('SIGTERM')
      expect(await first.exitCode).to.equal(128 + 15)
      await expectNothingLeft(first)
      await ping(second.mongoUrl)
      await ping(second.redisUrl)
    })

    it('when the user presses Ctrl-C several times', async () => {
      const { child } = second
      const pressCtrlC = () => {
        if (child.exitCode === null && child.pid) process.kill(-child.pid, 'SIGINT')
        return child.exitCode !== null
      }
      await until('the run has ended', pressCtrlC, TEST_TIMEOUT_MS)
      expect(child.exitCode).to.equal(128 + 2)
      await expectNothingLeft(second)
    })

    it('after SIGKILL: the process of Redis at once, and the container by the next run', async function () {
      if (process.platform !== 'linux') skipFor(this, 'only Linux can end a process with its parent')
      third.child.kill('SIGKILL')
      await third.exitCode
      await until('Redis has ended', async () => (await getError(ping(third.redisUrl))) !== undefined)
      await ping(third.mongoUrl)
      const next = await startRun('')
      await expectNothingLeft(third)
      expect(await next.exitCode).to.equal(0)
    })

    it('at the end of a run in which a test fails', async () => {
      const run = await startRun(`throw new Error('planted')`)
      expect(await run.exitCode).to.equal(1)
      await expectNothingLeft(run)
    })
  })

  for (const [name, start] of [
    ['MongoDB', anOwnMongo],
    ['Redis', (context: Mocha.Context) => anOwnRedis(context, ['--appendonly', 'yes'])],
  ] as const) {
    describe(`that belong to one suite: ${name}`, () => {
      let engine: OwnEngine

      before(async function () {
        engine = await start(this)
        await keepData(engine.url)
      })

      after(() => engine?.stop())

      it('are available at the same URL with their data after a kill and a start', async () => {
        await engine.kill()
        expect(await getError(ping(engine.url))).to.be.an('error')
        await engine.start()
        expect(await hasData(engine.url)).to.equal(true)
      })

      it('do not respond while they are frozen', async () => {
        await engine.freeze()
        expect(await getError(ping(engine.url))).to.be.an('error')
        await engine.unfreeze()
        expect(await hasData(engine.url)).to.equal(true)
      })

      it('accept every method in every state, even twice', async () => {
        for (const step of ['freeze', 'freeze', 'unfreeze', 'unfreeze', 'freeze', 'kill', 'kill', 'unfreeze', 'start', 'start'] as const) {
          await engine[step]()
        }
        await engine.freeze()
        await engine.start()
        await ping(engine.url)
      })

      it('cannot be started again after they were stopped', async () => {
        await engine.freeze()
        await engine.stop()
        await engine.stop()
        expect(await getError(ping(engine.url))).to.be.an('error')
        expect(await getError(engine.start())).to.be.an('error')
      })
    })
  }

  it('that belong to one suite accept additional arguments for redis-server', async function () {
    const engine = await anOwnRedis(this, ['--cluster-enabled', 'yes'])
    expect(await withRedis(engine.url, (client) => client.cluster('INFO'))).to.include('cluster_state')
    await engine.stop()
  })

  const WAIT_FOREVER = 'await new Promise(() => setInterval(() => {}, 1000))'

  /** Each suite leaves data in its database. */
  const DATABASE_SUITES = `
    import { aMongoDatabase } from ${support('engines/mongo-engine')}
    import { aRedisDatabase } from ${support('engines/redis-engine')}
    import { withMongo } from ${support('engines/mongo-client')}
    import { withRedis } from ${support('engines/redis-client')}
    describe('MongoDB', () => {
      let url
      before(async function () { url = (await aMongoDatabase(this)).url })
      it('takes a document', async () => {
        console.log('MongoDB', url)
        await withMongo(url, (client) => client.db().collection('pets').insertOne({ _id: 'planted' }))
      })
    })
    describe('Redis', () => {
      let url
      before(async function () { url = (await aRedisDatabase(this)).url })
      it('takes a value', async () => {
        console.log('Redis', url)
        await withRedis(url, (client) => client.incr('planted'))
      })
    })`

  async function finishRun(suite: string, env: NodeJS.ProcessEnv) {
    const run = mocha(suite, env)
    const exitCode = await run.exitCode
    const output = run.output()
    return { output, exitCode, lastLine: output.split('\n').at(-2) }
  }

  /** Resolves when the test has started a container and a process. `rest` is what the test does afterwards. */
  async function startRun(rest: string): Promise<Run> {
    const run = mocha(`
      import { anOwnMongo } from ${support('engines/mongo-engine')}
      import { anOwnRedis } from ${support('engines/redis-engine')}
      it('needs engines', async function () {
        this.timeout(0)
        const [mongo, redis] = [await anOwnMongo(this), await anOwnRedis(this)]
        console.log('STARTED', mongo.url, redis.url)
        ${rest}
      })`)
    const urls = () => /^STARTED (\S+) (\S+)$/m.exec(run.output())
    await until('the engines are running', () => urls() !== null || run.child.exitCode !== null, TEST_TIMEOUT_MS)
    const [, mongoUrl, redisUrl] = urls() ?? []
    if (!mongoUrl || !redisUrl) throw new Error(`The run has ended:\n${run.output()}`)
    return { ...run, mongoUrl, redisUrl }
  }

  function mocha(suite: string, env: NodeJS.ProcessEnv = {}) {
    const file = join(mkdtempSync(join(folder, 'suite-')), 'planted.test.mjs')
    writeFileSync(file, suite)
    const child = spawn(process.execPath, ['node_modules/mocha/bin/mocha.js', file], {
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...env },
    })
    children.add(child)
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
    const exitCode = once(child, 'close').then(([code]) => code as number | null)
    return { child, output: () => output, exitCode: within(TEST_TIMEOUT_MS, 'the run ends', exitCode) }
  }

  function support(name: string): string {
    return JSON.stringify(pathToFileURL(resolve(`dist/test/support/${name}.js`)).href)
  }
})

describe('a mongod in a container', () => {
  it('is the only member of a replica set, on the same port inside and outside, and is used once it is primary', async () => {
    expect(mongoReplicaSet.innerPort(15_017)).to.equal(15_017)
    expect(mongoReplicaSet.command(15_017).join(' ')).to.equal('--replSet petstore --bind_ip_all --port 15017')

    let helloesLeft = 1
    let member: string | undefined
    const stub = await startMongoStub((command) => {
      if ('replSetInitiate' in command) member = command['replSetInitiate'].members[0].host
      if (!isHello(command)) return {}
      if (member === undefined) return makeHelloResponse({ isreplicaset: true, isWritablePrimary: false, ismaster: false })
      const isPrimary = --helloesLeft < 0
      const roles = { isWritablePrimary: isPrimary, ismaster: isPrimary, secondary: !isPrimary }
      return makeHelloResponse({ setName: 'petstore', setVersion: 1, hosts: [member], me: member, ...roles })
    })
    try {
      await initiateReplicaSet('127.0.0.1', stub.port)
      await untilItResponds(`mongodb://127.0.0.1:${stub.port}`, pingMongo)
      const members = [{ _id: 0, host: `127.0.0.1:${stub.port}` }]
      expect(stub.received('replSetInitiate').map(({ replSetInitiate }) => replSetInitiate)).to.deep.equal([{ _id: 'petstore', members }])
      expect(helloesLeft).to.be.lessThan(0)
    } finally {
      await stub.close()
    }
  })
})

describe('the attempts to find an engine', () => {
  const unavailable = (reason: string) => async () => Promise.reject(new NoEngine(reason))

  it('end with the first engine that is available', async () => {
    const next = async () => Promise.reject(new Error('must not be tried'))
    expect(await firstAvailable(unavailable('no Docker'), async () => 'found', next)).to.equal('found')
  })

  it('end with all reasons if no engine is available', async () => {
    const error = await getError(firstAvailable(unavailable('no Docker'), unavailable('no program')))
    expect(error).to.be.an.instanceOf(NoEngine).with.property('message', 'no Docker; no program')
  })

  it('end with an engine that does not start: no other engine hides the error', async () => {
    const broken = async () => Promise.reject(new Error('broken'))
    expect(await getError(firstAvailable(broken, async () => 'found'))).to.include({ message: 'broken' })
  })
})

describe('the database in a URL', () => {
  it('of MongoDB is replaced, and the servers and options are kept', () => {
    expect(withDatabase('mongodb://a', 'mine')).to.equal('mongodb://a/mine')
    expect(withDatabase('mongodb://a:1/theirs', 'mine')).to.equal('mongodb://a:1/mine')
    expect(withDatabase('mongodb://a:1,b:2/?replicaSet=rs', 'mine')).to.equal('mongodb://a:1,b:2/mine?replicaSet=rs')
    expect(withDatabase('mongodb+srv://a/theirs?tls=true&w=majority', 'mine')).to.equal('mongodb+srv://a/mine?tls=true&w=majority')
    expect(withDatabase('mongodb://a?w=1', 'mine')).to.equal('mongodb://a/mine?w=1')
  })

  it('of MongoDB does not change the database that users authenticate against', () => {
    expect(withDatabase('mongodb://u:p@a', 'mine')).to.equal('mongodb://u:p@a/mine?authSource=admin')
    expect(withDatabase('mongodb://u:p@a/theirs?w=1', 'mine')).to.equal('mongodb://u:p@a/mine?w=1&authSource=theirs')
    expect(withDatabase('mongodb://u:p@a/theirs?authSource=x', 'mine')).to.equal('mongodb://u:p@a/mine?authSource=x')
    expect(withDatabase('mongodb://u@a/?authMechanism=MONGODB-X509', 'mine')).to.equal('mongodb://u@a/mine?authMechanism=MONGODB-X509')
  })

  it('of Redis is a number, and the rest is kept', () => {
    expect(withDatabaseNumber('redis://a', 3)).to.equal('redis://a/3')
    expect(withDatabaseNumber('rediss://u:p@a:1/0?family=6', 15)).to.equal('rediss://u:p@a:1/15?family=6')
  })
})

interface Run {
  readonly child: ChildProcess
  readonly exitCode: Promise<number | null>
  readonly mongoUrl: string
  readonly redisUrl: string
}

async function expectNothingLeft({ child, mongoUrl, redisUrl }: Run): Promise<void> {
  const { dockerode } = (await getContainerRuntimeClient()).container
  const containers = await dockerode.listContainers({ all: true, filters: { label: [RUN_LABEL] } })
  expect(containers.filter(({ Labels }) => Labels[RUN_LABEL]?.endsWith(`/${child.pid}`))).to.deep.equal([])
  for (const url of [mongoUrl, redisUrl]) expect(await getError(ping(url)), url).to.be.an('error')
}

function isRedis(url: string): boolean {
  return url.startsWith('redis:')
}

async function ping(url: string): Promise<void> {
  if (isRedis(url)) await withRedis(url, (client) => client.ping(), PING_MS)
  else await withMongo(url, (client) => client.db().command({ ping: 1 }), PING_MS)
}

async function keepData(url: string): Promise<void> {
  if (isRedis(url)) await withRedis(url, (client) => client.set('data', '1'))
  else await withMongo(url, (client) => client.db().collection('data').insertOne({}))
}

async function hasData(url: string): Promise<boolean> {
  if (isRedis(url)) return (await withRedis(url, (client) => client.dbsize())) === 1
  return (await withMongo(url, (client) => client.db().collection('data').countDocuments())) === 1
}

async function getError(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (error: unknown) => error,
  )
}
