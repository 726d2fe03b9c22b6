import { expect } from 'chai'
import type { Redis } from 'ioredis'
import type { RedisConnection } from '../../src/adapters/redis/redis-connection.js'
import { CryptoApiKeySecrets } from '../../src/adapters/node/crypto-api-key-secrets.js'
import { readQuotaHeaders } from '../support/responses.js'
import type { TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import { useDatabases } from '../support/engines/use-databases.js'
import type { Hit } from '../support/load-generator.js'
import { countByStatus, LoadGenerator, describeLatencies } from '../support/load-generator.js'
import { sharedSettings, startReplicas } from '../support/replicas.js'
import type { ServiceProcess } from '../support/process.js'
import { endProcesses, issueKey } from '../support/process.js'
import { until } from '../support/until.js'
import { WatchedApiKeyStore } from '../support/watched-api-key-store.js'
import { issueAmpleKey } from '../support/api.js'
import { KEYS, PREFIX } from '../support/redis-replica.js'

const REPLICAS = 2
const CLIENTS_EACH = 16
const GUESSES = 4_000
const FAILURES_PER_MINUTE = 30
/** Four lookups per IP address are in flight on a replica, so three more may have begun when the limit is reached. */
const MAX_LOOKUPS = FAILURES_PER_MINUTE + 3
const secrets = new CryptoApiKeySecrets()
/** Returns a well-formed secret that no key has. Only a lookup can reveal that. */
const guess = () => secrets.generate().secret

describe(`${GUESSES} well-formed keys guessed from one IP address, on ${REPLICAS} replicas,`, function () {
  this.timeout(60_000)
  const databases = useDatabases()

  describe('each in its own process,', () => {
    const from = (address: string) => ({ 'x-forwarded-for': address })
    let replicas: ServiceProcess[]
    let urls: string[]
    let guessed: readonly Hit[]
    let known: readonly Hit[]

    before(async () => {
      const settings = sharedSettings(databases.mongo, databases.redis.url)
      replicas = await startReplicas(REPLICAS, { ...settings, TRUSTED_PROXY_HOPS: '1' })
      urls = replicas.map(({ url }) => url)
      const { key } = await issueKey(settings)
      for (const replica of replicas) await replica.send('/v1/pets', { key, headers: from('198.51.100.7') })

      const headers = () => from('198.51.100.7')
      const guessing = new LoadGenerator(urls, { key: guess, clientsEach: CLIENTS_EACH, atMost: GUESSES, headers })
      const working = new LoadGenerator(urls, { key: () => key, clientsEach: 1, everyMs: 20, headers })
      const startMs = performance.now()
      await guessing.done
      const tookMs = performance.now() - startMs
      await working.stop()
      guessed = guessing.hits
      known = working.hits
      console.error(
        `Figures: ${guessed.length} guesses in ${Math.round(tookMs)} ms: ${JSON.stringify(countByStatus(guessed))}, ${describeLatencies(guessed)}; known key: ${JSON.stringify(countByStatus(known))}, ${describeLatencies(known)}`,
      )
    })
    after(endProcesses)

    it(`get ${FAILURES_PER_MINUTE} responses with 401 per minute, and 429 otherwise`, () => {
      expect(countByStatus(guessed)).to.have.all.keys('401', '429')
      const rejected = guessed.filter(({ status }) => status === 401).map(({ headers }) => headers['x-ratelimit-reset'])
      const resets = [...new Set(guessed.map(({ headers }) => headers['x-ratelimit-reset']))]
      for (const reset of resets) expect(rejected.filter((each) => each === reset)).to.have.length.of.at.most(FAILURES_PER_MINUTE)
      expect(rejected).to.have.length.of.at.least(FAILURES_PER_MINUTE)
    })

    it('get the quota headers of the IP address on every response', () => {
      for (const { limit, remaining } of guessed.map(readQuotaHeaders)) {
        expect(limit).to.equal(FAILURES_PER_MINUTE)
        expect(remaining).to.be.within(0, limit)
      }
    })

    it('do not affect a key from the same IP address that the replicas have verified', () => {
      expect(countByStatus(known)).to.have.all.keys('200')
    })

    it('do not count toward the limit of another IP address', async () => {
      const other = new LoadGenerator(urls, { key: guess, clientsEach: 1, atMost: 10, headers: () => from('198.51.100.8') })
      await other.done
      expect(countByStatus(other.hits)).to.deep.equal({ 401: 10 })
    })
  })

  describe('with a clock that the test moves,', () => {
    let store: WatchedApiKeyStore
    let apis: TestApi[]

    beforeEach(async () => {
      await databases.redis.flush()
      store = new WatchedApiKeyStore()
      const config = { distributed: { mongodbUrl: databases.mongo.url, redisUrl: databases.redis.url, redisPrefix: PREFIX } }
      const doubles = { apiKeyStore: store }
      apis = await Promise.all(Array.from({ length: REPLICAS }, () => startApi({ config, doubles })))
    })
    afterEach(async () => {
      await Promise.all(apis.map((api) => api.stop()))
    })

    const guessOn = async (guessedOn: readonly TestApi[]) => {
      const load = new LoadGenerator(
        guessedOn.map(({ url }) => url),
        { key: guess, clientsEach: CLIENTS_EACH, atMost: GUESSES },
      )
      await load.done
      console.error(
        `Figures: on ${guessedOn.length} replicas: ${store.queries.length} lookups, ${JSON.stringify(countByStatus(load.hits))}`,
      )
      return countByStatus(load.hits)
    }

    for (const replicas of [1, REPLICAS]) {
      it(`cause at most ${MAX_LOOKUPS} lookups per replica and exactly ${FAILURES_PER_MINUTE} responses with 401 when they are sent to ${replicas}`, async () => {
        expect(await guessOn(apis.slice(0, replicas))).to.deep.equal({ 401: FAILURES_PER_MINUTE, 429: GUESSES - FAILURES_PER_MINUTE })
        expect(store.queries.length).to.be.within(FAILURES_PER_MINUTE, replicas * MAX_LOOKUPS)
      })
    }

    it('cause no Redis command and no lookup once the limit is reached, nor do requests without a key, OPTIONS and unknown paths', async () => {
      const [api] = apis as [TestApi]
      await guessOn([api])
      const connection = api.redis as RedisConnection
      await until('Redis is used', () => connection.breaker.isUp)
      const client = connection.client as Redis
      let commands = 0
      const send = client.sendCommand.bind(client)
      client.sendCommand = (...args: Parameters<typeof send>) => {
        const isHeartbeat = args[0].args.includes(KEYS.replicas)
        if (!isHeartbeat) commands += 1
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

    it('cause no lookup once the limit is reached, while a key that the replica has verified is served', async () => {
      const [api] = apis as [TestApi]
      const key = await issueAmpleKey(api)
      expect((await api.send('/v1/pets', { key })).status).to.equal(200)
      await guessOn([api])
      const lookups = store.queries.length
      expect((await api.send('/v1/pets', { key: guess() })).status).to.equal(429)
      expect((await api.send('/v1/pets', { key })).status).to.equal(200)
      expect(store.queries).to.have.lengthOf(lookups)
    })
  })
})
