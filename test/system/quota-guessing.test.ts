import { expect } from 'chai'
import type { Redis } from 'ioredis'
import type { RedisConnection } from '../../src/adapters/redis/redis-connection.js'
import { CryptoApiKeySecrets } from '../../src/adapters/node/crypto-api-key-secrets.js'
import { readQuotaHeaders } from '../support/responses.js'
import type { TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import type { MongoDatabase } from '../support/engines/mongo-engine.js'
import { aMongoDatabase } from '../support/engines/mongo-engine.js'
import type { RedisDatabase } from '../support/engines/redis-engine.js'
import { aRedisDatabase } from '../support/engines/redis-engine.js'
import type { Hit } from '../support/hammer.js'
import { countByStatus, Hammer, describeLatencies } from '../support/hammer.js'
import { sharedSettings, startReplicas } from '../support/replicas.js'
import type { ServiceProcess } from '../support/process.js'
import { endProcesses, issueKey } from '../support/process.js'
import { until } from '../support/until.js'
import { WatchedApiKeyStore } from '../support/watched-api-key-store.js'
import { issueAmpleKey } from '../support/api.js'

const REPLICAS = 2
const CLIENTS_EACH = 16
const GUESSES = 4_000
const FAILURES_PER_MINUTE = 30
const secrets = new CryptoApiKeySecrets()
/** Of the right shape and with the right checksum: only a look-up tells that nobody has it. */
const guess = () => secrets.generate().secret

describe(`${GUESSES} well-formed keys guessed at one address, on ${REPLICAS} replicas,`, function () {
  this.timeout(60_000)
  let mongo: MongoDatabase
  let redis: RedisDatabase

  before(async function () {
    mongo = await aMongoDatabase(this)
    redis = await aRedisDatabase(this)
  })
  after(async () => {
    await redis?.release()
    await mongo?.drop()
  })

  describe('each a process,', () => {
    const from = (address: string) => ({ 'x-forwarded-for': address })
    let replicas: ServiceProcess[]
    let urls: string[]
    let guessed: readonly Hit[]
    let known: readonly Hit[]

    before(async () => {
      const settings = sharedSettings(mongo, redis.url)
      replicas = await startReplicas(REPLICAS, { ...settings, TRUSTED_PROXY_HOPS: '1' })
      urls = replicas.map(({ url }) => url)
      const { key } = await issueKey(settings)
      for (const replica of replicas) await replica.send('/v1/pets', { key, headers: from('198.51.100.7') })

      const headers = () => from('198.51.100.7')
      const guessing = new Hammer(urls, { key: guess, clientsEach: CLIENTS_EACH, atMost: GUESSES, headers })
      const working = new Hammer(urls, { key: () => key, clientsEach: 1, everyMs: 20, headers })
      const beganMs = performance.now()
      await guessing.done
      const tookMs = performance.now() - beganMs
      await working.stop()
      guessed = guessing.hits
      known = working.hits
      console.error(
        `Figures: ${guessed.length} guesses in ${Math.round(tookMs)} ms: ${JSON.stringify(countByStatus(guessed))}, ${describeLatencies(guessed)}; known key: ${JSON.stringify(countByStatus(known))}, ${describeLatencies(known)}`,
      )
    })
    after(endProcesses)

    it(`are told of ${FAILURES_PER_MINUTE} in a minute that they are wrong; the rest are 429`, () => {
      expect(countByStatus(guessed)).to.have.all.keys('401', '429')
      const told = guessed.filter(({ status }) => status === 401).map(({ headers }) => headers['x-ratelimit-reset'])
      const minutes = [...new Set(guessed.map(({ headers }) => headers['x-ratelimit-reset']))]
      for (const minute of minutes) expect(told.filter((each) => each === minute)).to.have.length.of.at.most(FAILURES_PER_MINUTE)
      expect(told).to.have.length.of.at.least(FAILURES_PER_MINUTE)
    })

    it('are all answered with what the address has left: the triple on every one', () => {
      for (const { limit, remaining } of guessed.map(readQuotaHeaders)) {
        expect(limit).to.equal(FAILURES_PER_MINUTE)
        expect(remaining).to.be.within(0, limit)
      }
    })

    it('do not hinder a key that the replicas know, behind the same address', () => {
      expect(countByStatus(known)).to.have.all.keys('200')
    })

    it('do not count for another address, which may fail as often', async () => {
      const other = new Hammer(urls, { key: guess, clientsEach: 1, atMost: 10, headers: () => from('198.51.100.8') })
      await other.done
      expect(countByStatus(other.hits)).to.deep.equal({ 401: 10 })
    })
  })

  describe('whose clock stands still,', () => {
    let store: WatchedApiKeyStore
    let apis: TestApi[]

    beforeEach(async () => {
      await redis.flush()
      store = new WatchedApiKeyStore()
      const config = { distributed: { mongodbUrl: mongo.url, redisUrl: redis.url } }
      const doubles = { apiKeyStore: store }
      apis = await Promise.all(Array.from({ length: REPLICAS }, () => startApi({ config, doubles })))
    })
    afterEach(async () => {
      await Promise.all(apis.map((api) => api.stop()))
    })

    const guessOn = async (guessedOn: readonly TestApi[]) => {
      const hammer = new Hammer(
        guessedOn.map(({ url }) => url),
        { key: guess, clientsEach: CLIENTS_EACH, atMost: GUESSES },
      )
      await hammer.done
      console.error(
        `Figures: on ${guessedOn.length} replicas: ${store.queries.length} look-ups, ${JSON.stringify(countByStatus(hammer.hits))}`,
      )
      return countByStatus(hammer.hits)
    }

    it(`cause ${FAILURES_PER_MINUTE} look-ups in the store when all come to one replica`, async () => {
      expect(await guessOn(apis.slice(0, 1))).to.deep.equal({ 401: FAILURES_PER_MINUTE, 429: GUESSES - FAILURES_PER_MINUTE })
      expect(store.queries).to.have.lengthOf(FAILURES_PER_MINUTE)
    })

    it(`cause at most ${FAILURES_PER_MINUTE} look-ups per replica, however they are spread, and ${FAILURES_PER_MINUTE} answers that tell`, async () => {
      expect(await guessOn(apis)).to.deep.equal({ 401: FAILURES_PER_MINUTE, 429: GUESSES - FAILURES_PER_MINUTE })
      expect(store.queries.length).to.be.within(FAILURES_PER_MINUTE, REPLICAS * FAILURES_PER_MINUTE)
    })

    it('cause no Redis command and no lookup once the limit is reached, nor do requests without a key, OPTIONS and unknown paths', async () => {
      const [api] = apis as [TestApi]
      await guessOn([api])
      const connection = api.redis as RedisConnection
      await until('Redis is used', () => connection.breaker.isUp)
      const client = connection.client as Redis
      let commands = 0
      const send = client.sendCommand.bind(client)
      client.sendCommand = (...args: Parameters<typeof send>) => {
        commands += 1
        return send(...args)
      }
      const lookups = store.queries.length
      for (let time = 0; time < 50; time += 1) {
        expect((await api.send('/v1/pets', { key: guess() })).status).to.equal(429)
        expect((await api.send('/v1/pets', { key: 'rubbish' })).status).to.equal(429)
        expect((await api.send('/v1/pets')).status).to.equal(401)
        expect((await api.send('/v1/none')).status).to.equal(401)
        expect((await api.send('/none')).status).to.equal(404)
        expect((await api.send('/v1/pets', { method: 'OPTIONS' })).status).to.equal(204)
      }
      expect({ commands, lookups: store.queries.length }).to.deep.equal({ commands: 0, lookups })

      api.clock.advanceSeconds(60)
      expect((await api.send('/v1/pets')).status).to.equal(401)
      expect(commands).to.be.above(0)
    })

    it('are not looked up, each one new, while a key that the replica has verified is served', async () => {
      const [api] = apis as [TestApi]
      const key = await issueAmpleKey(api)
      expect((await api.send('/v1/pets', { key })).status).to.equal(200)
      await guessOn([api])
      const lookUps = store.queries.length
      expect((await api.send('/v1/pets', { key: guess() })).status).to.equal(429)
      expect((await api.send('/v1/pets', { key })).status).to.equal(200)
      expect(store.queries).to.have.lengthOf(lookUps)
    })
  })
})
