import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { Redis } from 'ioredis'
import { MongoClient } from 'mongodb'
import { getContainerRuntimeClient } from 'testcontainers'
import { findDocker, RUN_LABEL } from '../support/engines/docker.js'
import { aMongoDatabase, anOwnMongo, type MongoDatabase } from '../support/engines/mongo-engine.js'
import type { OwnEngine } from '../support/engines/own-engine.js'
import { stampOf } from '../support/engines/process-stamp.js'
import { anOwnRedis, withDatabaseNumber } from '../support/engines/redis-engine.js'
import { until, within } from '../support/until.js'

/** Containers start, and are removed, in a second or two each. */
const RUN_MS = 60_000
const FOUND_NOWHERE = {
  ENGINES: 'found-only',
  DOCKER_HOST: 'unix:///nowhere/docker.sock',
  PATH: '/nowhere',
  MONGODB_URL: '',
  REDIS_URL: '',
  MONGODB_IMAGE: '',
  REDIS_IMAGE: '',
}

describe('the engines of a test run', function () {
  this.timeout(RUN_MS)

  let folder: string
  const pids = new Set<number>()

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'petstore-engines-test-'))
  })

  afterEach(() => {
    for (const pid of pids) if (isRunning(pid)) process.kill(pid, 'SIGKILL')
    pids.clear()
    rmSync(folder, { recursive: true })
  })

  describe('of which none is found and none may be set up', () => {
    it('are skipped with a reason, suite by suite', () => {
      const run = finishedRun(SUITES_OF_BOTH, { ...FOUND_NOWHERE, REQUIRE_ENGINES: '' })
      expect(run.output).to.match(/SKIPPED: MongoDB finds a pet: .*DOCKER_HOST.*; ENGINES=found-only switches setting up off\n/)
      expect(run.output).to.match(/SKIPPED: Redis counts: .*DOCKER_HOST.*; this machine has no redis-server; ENGINES=found-only .*\n/)
      expect(run.lastLine).to.equal('0 passed, 0 failed, 2 skipped')
      expect(run.status).to.equal(0)
    })

    it('are told last to those who want to run them', () => {
      const run = finishedRun(SUITES_OF_BOTH, { ...FOUND_NOWHERE, REQUIRE_ENGINES: '' })
      expect(run.output).to.match(
        /\n2 of 2 tests did not run\.\nTo run 2 of them: start Docker, or set MONGODB_URL and REDIS_URL, .*\n.*\n$/,
      )
    })

    it('are failures under REQUIRE_ENGINES=1', () => {
      const run = finishedRun(SUITES_OF_BOTH, { ...FOUND_NOWHERE, REQUIRE_ENGINES: '1' })
      expect(run.lastLine).to.equal('0 passed, 2 failed, 0 skipped')
      expect(run.status).to.not.equal(0)
    })
  })

  it('fail their suites, though nothing may be set up, when an image is configured that is not to be had', () => {
    const images = { MONGODB_IMAGE: 'nowhere/mongo:1', REDIS_IMAGE: 'nowhere/redis:1' }
    const run = finishedRun(SUITES_OF_BOTH, { ...FOUND_NOWHERE, ...images, REQUIRE_ENGINES: '' })
    for (const image of Object.values(images)) expect(run.output).to.include(`EngineFailed: ${image} is configured and cannot be used`)
    expect(run.lastLine).to.equal('0 passed, 2 failed, 0 skipped')
  })

  describe('in a container', () => {
    let image: string

    before(async function () {
      const server = await anOwnMongo(this)
      image = server.how.replace('Docker, ', '')
      await server.stop()
    })

    const started = async (args: readonly string[], startsWithinMs: number) => {
      const docker = await findDocker()
      return docker.start({ image, readyLine: /never printed/, innerPort: () => 1, command: () => args, startsWithinMs })
    }

    it('that ends instead of getting ready are given up at once, with the end of its log', async () => {
      const failure = await failureOf(within(RUN_MS / 2, 'it is noticed', started(['--no-such-option'], RUN_MS)))
      expect(failure).to.be.an('error').with.property('message').that.includes('the end of its log:').and.includes('no-such-option')
    })

    it('that is not ready in time are given up with the end of its log', async () => {
      const failure = await failureOf(started([], 5_000))
      expect(failure)
        .to.be.an('error')
        .with.property('message')
        .that.matches(/not received after 5000ms.*the end of its log:\n/s)
    })
  })

  describe('whose URL is in the environment', () => {
    let mongo: MongoDatabase
    let redis: OwnEngine

    before(async function () {
      mongo = await aMongoDatabase(this)
      redis = await anOwnRedis(this)
    })

    after(async () => {
      await mongo?.drop()
      await redis?.stop()
    })

    it('go first, with their options and a database of each suite its own', () => {
      const urls = { MONGODB_URL: `${mongo.url}?appName=planted`, REDIS_URL: redis.url }
      const run = finishedRun(SUITES_OF_BOTH, { ...FOUND_NOWHERE, ...urls })
      expect(run.lastLine).to.equal('2 passed, 0 failed, 0 skipped')
      expect(run.output).to.match(/^MONGODB_URL mongodb:\S+\/petstore_test_[0-9a-f]{12}\?appName=planted$/m)
      expect(run.output).to.not.include(new URL(mongo.url).pathname)
      expect(run.output).to.include(`REDIS_URL ${redis.url}/1\n`)
      expect(run.errors).to.include('Engine: MongoDB from MONGODB_URL\n').and.to.include('Engine: Redis from REDIS_URL\n')
    })

    it('are left without the databases that suites did not drop', async () => {
      const urls = { MONGODB_URL: mongo.url, REDIS_URL: redis.url }
      const run = finishedRun(SUITES_OF_BOTH, { ...FOUND_NOWHERE, ...urls })
      const [, name] = /(petstore_test_[0-9a-f]{12})/.exec(run.output) ?? []
      expect(name).to.be.a('string')
      expect(await databaseNames(mongo.url)).to.not.include(name)
      expect(await withRedis(withDatabaseNumber(redis.url, 1), (client) => client.dbsize())).to.equal(0)
    })

    it('keep the data that they held before', async () => {
      const usedUrl = withDatabaseNumber(redis.url, 1)
      await withRedis(usedUrl, (client) => client.set('somebody', 'else'))
      const run = finishedRun(SUITES_OF_BOTH, { ...FOUND_NOWHERE, MONGODB_URL: mongo.url, REDIS_URL: redis.url })
      expect(run.output).to.include(`REDIS_URL ${redis.url}/2\n`)
      expect(await withRedis(usedUrl, (client) => client.get('somebody'))).to.equal('else')
      await withRedis(usedUrl, (client) => client.flushdb())
    })

    it('are not replaced by others when they do not answer: their suites fail', () => {
      const run = finishedRun(SUITES_OF_BOTH, { MONGODB_URL: 'mongodb://127.0.0.1:1', REDIS_URL: 'redis://127.0.0.1:1' })
      expect(run.output).to.include('The server of MONGODB_URL does not answer').and.to.include('The server of REDIS_URL does not answer')
      expect(run.lastLine).to.equal('0 passed, 2 failed, 0 skipped')
    })
  })

  describe('are not left behind by a run', () => {
    before(async function () {
      const [mongo, redis] = [await anOwnMongo(this), await anOwnRedis(this)]
      await mongo.stop()
      await redis.stop()
    })

    it('that comes to its end with a test that failed', async () => {
      const run = await startedRun(`throw new Error('planted')`)
      expect(await run.exitCode).to.equal(1)
      await expectNothingLeft(run)
    })

    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      it(`that is ended by ${signal} in the middle of a test`, async () => {
        const run = await startedRun(UNENDING)
        run.child.kill(signal)
        expect(await run.exitCode).to.be.greaterThan(128)
        await expectNothingLeft(run)
      })
    }

    it('that is ended by somebody who presses Ctrl-C again and again, which reaches all its children', async () => {
      const run = await startedRun(UNENDING)
      const pressed = () => {
        if (isRunning(run.pid)) process.kill(-run.pid, 'SIGINT')
        return !isRunning(run.pid)
      }
      await until('the run has ended', pressed, RUN_MS)
      expect(await run.exitCode).to.be.greaterThan(128)
      await expectNothingLeft(run)
    })

    it('whose Mocha is ended by SIGTERM, which does not tell its child', async () => {
      const run = await startedRun(UNENDING, ['--enable-source-maps'])
      expect(run.child.pid).to.not.equal(run.pid)
      run.child.kill('SIGTERM')
      await until('the child of Mocha has ended', () => !isRunning(run.pid), RUN_MS)
      await expectNothingLeft(run)
    })

    it('that is ended by SIGKILL, once another run has needed engines', async () => {
      const killed = await startedRun(UNENDING)
      killed.child.kill('SIGKILL')
      await killed.exitCode
      const next = await startedRun('')
      expect(await next.exitCode).to.equal(0)
      await expectNothingLeft(killed)
      await expectNothingLeft(next)
    })

    it('that another run has not seen the end of, and are left to it', async () => {
      const running = await startedRun(UNENDING)
      const other = await startedRun('')
      expect(await other.exitCode).to.equal(0)
      await ping(running.redisUrl)
      expect(await containersOf(running.pid)).to.have.lengthOf(1)
      running.child.kill('SIGTERM')
      await running.exitCode
      await expectNothingLeft(running)
    })
  })

  for (const [name, anOwnEngine] of [
    ['MongoDB', anOwnMongo],
    ['Redis', (context: Mocha.Context) => anOwnRedis(context, ['--appendonly', 'yes'])],
  ] as const) {
    describe(`of a suite's own, ${name},`, () => {
      let engine: OwnEngine

      before(async function () {
        engine = await anOwnEngine(this)
      })

      afterEach(() => engine.start())

      after(() => engine?.stop())

      it('come back on the same URL with their data when they were killed', async () => {
        await keep(engine.url, 'killed')
        await engine.kill()
        expect(await failureOf(ping(engine.url))).to.be.an('error')
        await engine.start()
        expect(await kept(engine.url)).to.include('killed')
      })

      it('answer nothing while they are frozen, and again after a thaw', async () => {
        await keep(engine.url, 'frozen')
        await engine.freeze()
        expect(await failureOf(ping(engine.url))).to.be.an('error')
        await engine.thaw()
        expect(await kept(engine.url)).to.include('frozen')
      })

      it('can be killed while they are frozen', async () => {
        await engine.freeze()
        await engine.kill()
        await engine.start()
        await ping(engine.url)
      })

      it('answer when they were started, in whatever state they were', async () => {
        for (const step of ['start', 'freeze', 'kill'] as const) {
          await engine[step]()
          await engine.start()
          await ping(engine.url)
        }
      })

      it('take each step twice', async () => {
        const steps = ['freeze', 'thaw', 'kill', 'start'] as const
        for (const step of steps) {
          await engine[step]()
          await engine[step]()
        }
        await ping(engine.url)
      })
    })
  }

  it('that were stopped for good stay so, in whatever state they were', async function () {
    for (const step of ['start', 'freeze', 'kill'] as const) {
      const engine = await anOwnRedis(this)
      await engine[step]()
      await engine.stop()
      await engine.thaw()
      await engine.stop()
      expect(await failureOf(ping(engine.url))).to.be.an('error')
      expect(await failureOf(engine.start())).to.be.an('error')
    }
  })

  it('take more arguments for redis-server', async function () {
    const engine = await anOwnRedis(this, ['--cluster-enabled', 'yes'])
    expect(await withRedis(engine.url, (client) => client.cluster('INFO'))).to.include('cluster_state')
    await engine.stop()
  })

  const suiteModule = (name: string) => JSON.stringify(pathToFileURL(`dist/test/support/engines/${name}.js`).href)

  const SUITES_OF_BOTH = `
    import { aMongoDatabase } from ${suiteModule('mongo-engine')}
    import { aRedisDatabase } from ${suiteModule('redis-engine')}
    import { MongoClient } from ${JSON.stringify(import.meta.resolve('mongodb'))}
    import { Redis } from ${JSON.stringify(import.meta.resolve('ioredis'))}
    describe('MongoDB', () => {
      let database
      before(async function () { database = await aMongoDatabase(this) })
      it('finds a pet', async () => {
        console.log(database.how, database.url)
        const client = new MongoClient(database.url)
        await client.db().collection('pets').insertOne({ _id: 'planted' })
        await client.close()
      })
    })
    describe('Redis', () => {
      let database
      before(async function () { database = await aRedisDatabase(this) })
      it('counts', async () => {
        console.log(database.how, database.url)
        const client = new Redis(database.url)
        await client.incr('planted')
        client.disconnect()
      })
    })`

  const UNENDING = 'await new Promise(() => setInterval(() => {}, 1000))'

  /** Starts one engine in Docker and one process, says so, and does with the test what it is told. */
  const suiteOfOwnEngines = (rest: string) => `
    import { anOwnMongo } from ${suiteModule('mongo-engine')}
    import { anOwnRedis } from ${suiteModule('redis-engine')}
    it('needs engines', async function () {
      this.timeout(0)
      const [mongo, redis] = [await anOwnMongo(this), await anOwnRedis(this)]
      console.log('STARTED ' + JSON.stringify({ pid: process.pid, mongoUrl: mongo.url, redisUrl: redis.url }))
      ${rest}
    })`

  function mochaOn(suite: string, options: readonly string[] = []): string[] {
    const file = join(mkdtempSync(join(folder, 'suite-')), 'planted.test.mjs')
    writeFileSync(file, suite)
    const reporter = ['--reporter', 'dist/test/support/counting-reporter.js']
    return ['node_modules/mocha/bin/mocha.js', '--no-config', '--no-package', ...reporter, ...options, file]
  }

  function finishedRun(suite: string, env: NodeJS.ProcessEnv) {
    const { stdout, stderr, status } = spawnSync(process.execPath, mochaOn(suite), { encoding: 'utf8', env: { ...process.env, ...env } })
    return { output: stdout, errors: stderr, status, lastLine: stdout.split('\n').at(-2) }
  }

  /** Resolves when the run has started its engines, which is in the middle of its test. */
  async function startedRun(rest: string, options: readonly string[] = []) {
    const child = spawn(process.execPath, mochaOn(suiteOfOwnEngines(rest), options), {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text))
    const exitCode = once(child, 'close').then(([code]) => code as number | null)
    const started = new Promise<string>((resolve) => {
      child.stdout.on('data', () => {
        const [, found] = /^STARTED (.*)$/m.exec(output) ?? []
        if (found !== undefined) resolve(found)
      })
    })
    const line = await Promise.race([started, exitCode.then(() => Promise.reject(new Error(`It has ended:\n${output}`)))])
    const { pid, mongoUrl, redisUrl } = JSON.parse(line) as { pid: number; mongoUrl: string; redisUrl: string }
    pids.add(pid)
    return { child, exitCode: within(RUN_MS, 'the run ends', exitCode), pid, mongoUrl, redisUrl }
  }
})

interface Engines {
  readonly pid: number
  readonly mongoUrl: string
  readonly redisUrl: string
}

async function expectNothingLeft({ pid, mongoUrl, redisUrl }: Engines): Promise<void> {
  expect(await containersOf(pid), 'containers').to.deep.equal([])
  expect(await failureOf(ping(redisUrl)), 'redis-server').to.be.an('error')
  expect(await failureOf(ping(mongoUrl)), 'MongoDB').to.be.an('error')
}

/** Of the test run with this pid. */
async function containersOf(pid: number): Promise<string[]> {
  const { dockerode } = (await getContainerRuntimeClient()).container
  const containers = await dockerode.listContainers({ all: true, filters: { label: [RUN_LABEL] } })
  return containers.filter(({ Labels }) => Labels[RUN_LABEL]?.includes(`/${pid}/`)).map(({ Id }) => Id)
}

function isRunning(pid: number): boolean {
  return stampOf(pid) !== undefined
}

async function ping(url: string): Promise<void> {
  await (isRedis(url) ? withRedis(url, (client) => client.ping()) : withMongo(url, (client) => client.db().command({ ping: 1 })))
}

async function keep(url: string, what: string): Promise<void> {
  if (isRedis(url)) await withRedis(url, (client) => client.sadd('kept', what))
  else await withMongo(url, (client) => client.db().collection('kept').insertOne({ what }))
}

async function kept(url: string): Promise<unknown[]> {
  if (isRedis(url)) return withRedis(url, (client) => client.smembers('kept'))
  return withMongo(url, (client) => client.db().collection('kept').distinct('what'))
}

async function databaseNames(url: string): Promise<string[]> {
  const { databases } = await withMongo(url, (client) => client.db().admin().listDatabases())
  return databases.map(({ name }) => name)
}

function isRedis(url: string): boolean {
  return url.startsWith('redis:')
}

async function withMongo<Outcome>(url: string, work: (client: MongoClient) => Promise<Outcome>): Promise<Outcome> {
  const client = new MongoClient(url, { serverSelectionTimeoutMS: 1_000, connectTimeoutMS: 1_000, socketTimeoutMS: 5_000 })
  try {
    return await work(client)
  } finally {
    await client.close()
  }
}

async function withRedis<Outcome>(url: string, work: (client: Redis) => Promise<Outcome>): Promise<Outcome> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null, connectTimeout: 1_000, commandTimeout: 1_000 })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return await work(client)
  } finally {
    client.disconnect()
  }
}

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (error: unknown) => error,
  )
}
