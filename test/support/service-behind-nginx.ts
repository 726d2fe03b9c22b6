import { pingMongo } from './engines/mongo-client.js'
import { startMongoContainer } from './engines/mongo-engine.js'
import { withDatabase } from './engines/mongo-url.js'
import type { OwnEngine } from './engines/own-engine.js'
import { toOwnEngine } from './engines/own-engine.js'
import { pingRedis } from './engines/redis-client.js'
import { startRedisProcess } from './engines/redis-process.js'
import type { FaultInjectionProxy } from './fault-injection-proxy.js'
import { startFaultInjectionProxy } from './fault-injection-proxy.js'
import type { Nginx } from './nginx.js'
import { startNginxProcess } from './nginx.js'
import type { ServiceProcess, Settings } from './process.js'
import { endProcesses, startService } from './process.js'
import { sharedSettings, startServices } from './replicas.js'
import { until } from './until.js'

/** Replicas behind nginx, with a Redis and a MongoDB of their own. */
export class ServiceBehindNginx {
  private constructor(
    readonly mongo: OwnEngine,
    readonly redis: OwnEngine,
    readonly redisProxy: FaultInjectionProxy,
    readonly settings: Settings,
    readonly replicas: ServiceProcess[],
    readonly nginx: Nginx,
  ) {}

  /** Throws `NoEngine` if this machine lacks one of the servers. */
  static async start(replicaCount: number): Promise<ServiceBehindNginx> {
    const mongo = toOwnEngine(await startMongoContainer(), pingMongo)
    const redis = toOwnEngine(await startRedisProcess(), pingRedis)
    const redisProxy = await startFaultInjectionProxy(redis.url)
    const settings = {
      ...sharedSettings({ url: withDatabase(mongo.url, 'faults') }, `redis://${redisProxy.address}`),
      EXPECTED_REPLICAS: `${replicaCount}`,
      TRUSTED_PROXY_HOPS: '1',
      DRAIN_DELAY_MS: '500',
    }
    const replicas = await startServices(replicaCount, settings)
    const nginx = await startNginxProcess(replicas.map(({ url }) => url))
    return new ServiceBehindNginx(mongo, redis, redisProxy, settings, replicas, nginx)
  }

  getReplica(index: number): ServiceProcess {
    const replica = this.replicas[index]
    if (!replica) throw new Error(`There is no replica ${index}`)
    return replica
  }

  /** Starts a replica that has ended, on its ports. Resolves when it serves requests of nginx. */
  async startAgain(index: number): Promise<void> {
    const { url, adminUrl } = this.getReplica(index)
    const replica = await startService({ ...this.settings, PORT: new URL(url).port, ADMIN_PORT: new URL(adminUrl).port })
    this.replicas[index] = replica
    await until('nginx uses the replica', () => replica.logLines.some((line) => line.includes('"route":"/v1/')), 20_000)
  }

  async restartOneAfterTheOther(): Promise<void> {
    for (const index of this.replicas.keys()) {
      await this.getReplica(index).stop()
      await this.startAgain(index)
    }
  }

  async reloadNginx(): Promise<void> {
    await this.nginx.reload(this.replicas.map(({ url }) => url))
  }

  async setRedisDelay(delayMs: number): Promise<void> {
    this.redisProxy.delayMs = delayMs
    // Without a delay, responses must not overtake delayed ones.
    if (delayMs === 0) this.redisProxy.closeConnections()
  }

  /** Resolves when every replica uses Redis and MongoDB. */
  async untilHealthy(): Promise<void> {
    let states: string[] = []
    const areHealthy = async () => {
      const responses = await Promise.all(this.replicas.map(({ adminUrl }) => fetch(`${adminUrl}/health`)))
      states = await Promise.all(responses.map(async (response) => response.text()))
      return states.every((state) => state.includes('"mongodb":"up","redis":"up"'))
    }
    await until('every replica is healthy', areHealthy, 60_000).catch((cause: unknown) => {
      throw new Error(`Not every replica is healthy: ${states.join(', ')}`, { cause })
    })
  }

  async stop(): Promise<void> {
    await this.nginx.stop()
    await endProcesses()
    await Promise.all([this.redisProxy.close(), this.redis.stop(), this.mongo.stop()])
  }
}
