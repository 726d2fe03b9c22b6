import { CryptoApiKeySecrets } from '../../src/adapters/node/crypto-api-key-secrets.js'
import { readErrorCode, toHit } from './load-checks.js'
import type { Hit } from './load-generator.js'
import { LoadGenerator } from './load-generator.js'
import { PetWriters } from './pet-writers.js'
import type { ServiceProcess, Settings } from './process.js'
import type { StoredKey } from './stored-key.js'
import { issueStoredKeys } from './stored-key.js'
import { until } from './until.js'

const WRITERS = 2
const WRITER_PAUSE_MS = 50
/** The time between two requests of a client whose requests are all rejected. */
const REJECTED_EVERY_MS = 150

/** The documented statuses of each kind of caller, apart from 503. */
export const STATUSES = {
  'a key with quota left': [200],
  'a key that exhausts its minute': [200, 429],
  'an exhausted key': [429],
  'a banned key': [429],
  'an invalid key': [401, 429],
  'a key that adds pets': [201],
} as const
export type Caller = keyof typeof STATUSES
export type RejectedCaller = 'an exhausted key' | 'a banned key' | 'an invalid key'

/** Clients of several kinds that send requests to the same replicas. Replicas can be added and removed. */
export class LoadMix {
  /** A key with more requests than any test sends. Adds the pets. */
  readonly writers: PetWriters
  readonly #generators = new Set<LoadGenerator>()
  readonly #rejected: Readonly<Record<RejectedCaller, LoadGenerator>>
  #takenPets = 0
  #turn = 0

  private constructor(
    public replicas: readonly ServiceProcess[],
    readonly writerKey: string,
    keys: Readonly<Record<RejectedCaller, string>>,
  ) {
    const start = (caller: RejectedCaller) => this.startLoad(keys[caller], REJECTED_EVERY_MS)
    this.#rejected = {
      'an exhausted key': start('an exhausted key'),
      'a banned key': start('a banned key'),
      'an invalid key': start('an invalid key'),
    }
    const service = { send: (...sent: Parameters<ServiceProcess['send']>) => this.#nextReplica().send(...sent) }
    this.writers = new PetWriters(service, writerKey, WRITERS, WRITER_PAUSE_MS)
  }

  /** Exhausts one key for the day, has another one banned, and then starts the load. */
  static async start(replicas: readonly ServiceProcess[], { MONGODB_URL = '' }: Settings): Promise<LoadMix> {
    const ample = { minute: 1_000_000, day: 1_000_000 }
    const limits = [ample, { ...ample, day: 5 }, { minute: 5, day: 1_000 }]
    const newKeys = limits.map((each) => ({ owner: 'tests', plan: 'enterprise', limits: each }) as const)
    const [writing, exhausted, banned] = (await issueStoredKeys(MONGODB_URL, newKeys)) as [StoredKey, StoredKey, StoredKey]
    await sendUntilRejected(replicas, exhausted, 'daily_quota_exceeded')
    await sendUntilRejected(replicas, banned, 'key_temporarily_banned')
    return new LoadMix(replicas, writing.key, {
      'an exhausted key': exhausted.key,
      'a banned key': banned.key,
      'an invalid key': new CryptoApiKeySecrets().generate().secret,
    })
  }

  /** Starts a client per replica. */
  startLoad(key: string, everyMs: number): LoadGenerator {
    const urls = this.replicas.map(({ url }) => url)
    const load = new LoadGenerator(urls, { key: () => key, clientsEach: 1, everyMs })
    this.#generators.add(load)
    return load
  }

  async stopLoad(load: LoadGenerator): Promise<void> {
    this.#generators.delete(load)
    await load.stop()
  }

  add(replica: ServiceProcess): void {
    this.replicas = [...this.replicas, replica]
    for (const load of this.#generators) load.add(replica.url)
  }

  /** Sends no further requests to this replica, like a load balancer that has noticed that it is not ready. */
  remove(replica: ServiceProcess): void {
    this.replicas = this.replicas.filter((each) => each !== replica)
    for (const load of this.#generators) load.remove(replica.url)
  }

  /** The number of responses to the loads that are running, and to the writers. */
  countResponses(): number {
    return this.writers.written.length + [...this.#generators].reduce((sum, { hits }) => sum + hits.length, 0)
  }

  /** Returns what the permanent callers received since the last call. */
  takeHits(): Readonly<Record<RejectedCaller | 'a key that adds pets', readonly Hit[]>> {
    const { written } = this.writers
    const pets = written.slice(this.#takenPets).map(toHit)
    this.#takenPets = written.length
    const take = (caller: RejectedCaller) => this.#rejected[caller].hits.splice(0)
    return {
      'an exhausted key': take('an exhausted key'),
      'a banned key': take('a banned key'),
      'an invalid key': take('an invalid key'),
      'a key that adds pets': pets,
    }
  }

  async stop(): Promise<void> {
    await Promise.all([this.writers.stop(), ...[...this.#generators].map((load) => load.stop())])
  }

  #nextReplica(): ServiceProcess {
    this.#turn += 1
    const replica = this.replicas[this.#turn % this.replicas.length]
    if (!replica) throw new Error('There is no replica')
    return replica
  }
}

/** Sends requests until every replica has rejected one with this code. */
async function sendUntilRejected(replicas: readonly ServiceProcess[], { key }: StoredKey, code: string): Promise<void> {
  const load = new LoadGenerator(
    replicas.map(({ url }) => url),
    { key: () => key, clientsEach: 1, everyMs: 10 },
  )
  const urls = () => new Set(load.hits.filter((hit) => readErrorCode(hit) === code).map(({ url }) => url))
  try {
    await until(`every replica rejects with ${code}`, () => urls().size === replicas.length, 15_000)
  } finally {
    await load.stop()
  }
}
