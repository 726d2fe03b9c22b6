import { anOwnMongo } from './engines/mongo-engine.js'
import type { OwnEngine } from './engines/own-engine.js'
import { withRedis } from './engines/redis-client.js'
import { anOwnRedis } from './engines/redis-engine.js'
import type { FaultInjectionProxy } from './fault-injection-proxy.js'
import { startFaultInjectionProxy } from './fault-injection-proxy.js'
import { LoadMix } from './load-mix.js'
import { PlansForFaults } from './plans-for-faults.js'
import type { ServiceProcess, Settings } from './process.js'
import { endProcesses, startService } from './process.js'
import { sharedSettings, startServices } from './replicas.js'

/** Replicas with a Redis and a MongoDB of their own, behind proxies, under mixed load. */
export class ServiceUnderFaults {
  readonly #plans = new PlansForFaults()

  private constructor(
    readonly mongo: OwnEngine,
    readonly redis: OwnEngine,
    readonly mongoProxy: FaultInjectionProxy,
    readonly redisProxy: FaultInjectionProxy,
    /** Settings of commands, which connect without the proxies. */
    readonly direct: Settings,
  ) {}

  #mix: LoadMix | undefined

  get mix(): LoadMix {
    if (!this.#mix) throw new Error('The load has not started')
    return this.#mix
  }

  /** For a `before` hook. */
  static async start(context: Mocha.Context, replicaCount: number): Promise<ServiceUnderFaults> {
    const mongo = await anOwnMongo(context)
    const redis = await anOwnRedis(context)
    const toMongoUrl = (server: string) => `${server}/faults?directConnection=true`
    const service = new ServiceUnderFaults(
      mongo,
      redis,
      await startFaultInjectionProxy(mongo.url),
      await startFaultInjectionProxy(redis.url),
      sharedSettings({ url: toMongoUrl(mongo.url) }, redis.url),
    )
    try {
      const replicas = await startServices(replicaCount, service.#settings(toMongoUrl(`mongodb://${service.mongoProxy.address}`)))
      service.#mix = await LoadMix.start(replicas, service.direct)
    } catch (error) {
      await service.stop()
      throw error
    }
    return service
  }

  async addReplica(): Promise<void> {
    const { pathname, search } = new URL(this.direct['MONGODB_URL'] ?? '')
    this.mix.add(await startService(this.#settings(`mongodb://${this.mongoProxy.address}${pathname}${search}`)))
  }

  /** The last replica that was added. */
  get lastReplica(): ServiceProcess {
    const replica = this.mix.replicas.at(-1)
    if (!replica) throw new Error('There is no replica')
    return replica
  }

  async flushRedis(): Promise<void> {
    await withRedis(this.redis.url, (client) => client.flushall())
  }

  /** Whether every replica uses Redis and MongoDB. */
  async isHealthy(): Promise<boolean> {
    const checks = this.mix.replicas.map(async ({ adminUrl }) => {
      const { dependencies } = (await (await fetch(`${adminUrl}/health`)).json()) as { dependencies: Record<string, string> }
      return Object.values(dependencies).every((state) => state === 'up')
    })
    return (await Promise.all(checks)).every((isHealthy) => isHealthy)
  }

  async stop(): Promise<void> {
    await this.#mix?.stop()
    await endProcesses()
    await Promise.all([this.mongoProxy.close(), this.redisProxy.close(), this.redis.stop(), this.mongo.stop()])
    this.#plans.remove()
  }

  #settings(mongodbUrl: string): Settings {
    const redisUrl = `redis://${this.redisProxy.address}`
    return { ...sharedSettings({ url: mongodbUrl }, redisUrl), ...this.#plans.settings, DRAIN_DELAY_MS: '300', LOG_LEVEL: 'warn' }
  }
}
