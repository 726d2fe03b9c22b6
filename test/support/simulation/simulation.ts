import { RedisKeys } from '../../../src/adapters/redis/redis-keys.js'
import type { Charge, QuotaRules, Verdict } from '../../../src/core/quota.js'
import { getMinutePhaseSeconds } from '../../../src/core/window.js'
import { someBanRules, someQuotaRules } from '../builders.js'
import { check, Ledger } from './ledger.js'
import type { Random } from './random.js'
import { ScriptModel } from './script-model.js'
import { SimulatedClient } from './simulated-client.js'
import type { Recovered } from './simulated-redis.js'
import { SimulatedRedis } from './simulated-redis.js'
import type { ReplicaParts } from './simulated-replica.js'
import { SimulatedReplica } from './simulated-replica.js'
import type { Tally } from './tally.js'
import type { VirtualTime } from './virtual-time.js'

const MINUTE_MS = 60_000
const MAX_REPLICAS = 5
/** Clocks are wrong by at most this time, so a step back is at most half an hour. */
const MAX_CLOCK_ERROR_MS = 15 * MINUTE_MS
const SLOW_MS = 300
/** The time after a disturbance in which a replica may still wait for a connection or a response. */
const RECOVERY_MS = 1_500

export interface Parts extends ReplicaParts {
  readonly script?: typeof ScriptModel
  readonly log?: (event: string) => void
}

type FaultName = keyof typeof FAULTS

/** How often each fault occurs among 10,000 steps. */
const FAULTS = {
  flush: 30,
  kill: 40,
  start: 400,
  failover: 40,
  freeze: 30,
  thaw: 400,
  load: 15,
  finishLoading: 400,
  partition: 60,
  reconnectNetwork: 400,
  slowDown: 30,
  speedUp: 400,
  dropConnection: 60,
  corrupt: 15,
  stepSharedClock: 15,
} as const
/** These disturb no limit. */
const HARMLESS = { crash: 15, add: 40, remove: 15, stepLocalClock: 25, unban: 40, shiftLoad: 100, request: 8000 } as const

/** Some replicas with the real quota stores, one Redis, a network and the clocks. Each step is a request or a fault, and then time passes. */
export class Simulation {
  readonly ledger: Ledger
  readonly redis: SimulatedRedis
  readonly replicas: SimulatedReplica[] = []
  readonly #keys = new RedisKeys('petstore:', 1)
  readonly #rules: ReadonlyMap<string, QuotaRules>
  readonly #startMs: number
  readonly #requests = new Set<Promise<void>>()
  #added = 0
  #sharedStepMs = 0
  /** One replica gets all requests. */
  #isLoadUneven = false
  #hasClockStepped = false
  /** When a replica or its connection was last disturbed. */
  readonly #disturbedMs = new Map<SimulatedReplica, number>()
  #failure: { readonly error: unknown } | undefined

  /** `isCalm`: Redis is always available and keeps its data. */
  constructor(
    private readonly random: Random,
    private readonly time: VirtualTime,
    private readonly tally: Tally,
    private readonly isCalm: boolean,
    private readonly parts: Parts,
  ) {
    const keyIds = Array.from({ length: random.integer(1, 3) }, () => `key_${random.integer(0, 999)}`)
    this.#rules = new Map(keyIds.map((keyId) => [keyId, someRules(random)]))
    this.#startMs = Date.UTC(2026, 10, 20) + this.#chooseStartMs(keyIds[0] ?? '') - time.nowMs
    this.ledger = new Ledger(this.#rules, isCalm)
    const Script = parts.script ?? ScriptModel
    this.redis = new SimulatedRedis(new Script(() => this.#startMs + this.time.nowMs + this.#sharedStepMs), random)
    this.redis.script.operations.push((operation) => {
      parts.log?.(`${time.nowMs} ms: Redis ${JSON.stringify(operation)}`)
      this.#attempt(() => this.ledger.addOperation(operation))
      if (operation.outcome === 'done') tally.add(`Redis: ${operation.args.operation}`)
      if (operation.args.known) tally.add('Redis: merge')
    })
  }

  /** Throws an error if a guarantee does not hold. */
  async run(steps: number): Promise<void> {
    for (let count = this.random.integer(2, 4); count > 0; count--) this.#add()
    await this.time.advanceMs(50)
    const weights = this.isCalm ? HARMLESS : { ...FAULTS, ...HARMLESS }
    for (let step = 0; step < steps; step++) {
      this.#step(this.random.pickWeighted(weights))
      await this.time.advanceMs(this.#chooseMs())
      if (this.#failure) throw this.#failure.error
    }
    await this.#recover()
    this.#checkEnd()
    await this.#close()
    if (this.#failure) throw this.#failure.error
  }

  #step(name: FaultName | keyof typeof HARMLESS): void {
    const { redis, random } = this
    const replica = random.pick(this.replicas)
    const { client } = replica
    const isUp = redis.status === 'up'
    const happens: Record<typeof name, () => boolean> = {
      request: () => this.#request(),
      flush: () => isUp && !redis.isLoading && this.#lose(() => redis.flush()),
      kill: () => redis.status !== 'down' && did(() => redis.kill()),
      start: () => redis.status === 'down' && this.#start(),
      failover: () => isUp && did(() => redis.kill()) && this.#start(),
      freeze: () => isUp && this.#excuseAll() && did(() => redis.freeze()),
      thaw: () => redis.status === 'frozen' && this.#excuseAll() && did(() => redis.thaw()),
      load: () => isUp && this.#excuseAll() && did(() => (redis.isLoading = true)),
      finishLoading: () => redis.isLoading && this.#excuseAll() && did(() => (redis.isLoading = false)),
      partition: () => !client.isPartitioned && this.#disturb(replica, () => (client.isPartitioned = true)),
      reconnectNetwork: () => client.isPartitioned && this.#disturb(replica, () => (client.isPartitioned = false)),
      slowDown: () => client.maxDelayMs !== SLOW_MS && this.#disturb(replica, () => (client.maxDelayMs = SLOW_MS)),
      speedUp: () => client.maxDelayMs === SLOW_MS && this.#disturb(replica, () => (client.maxDelayMs = 3)),
      dropConnection: () => client.status === 'ready' && this.#disturb(replica, () => client.loseConnection()),
      corrupt: () => isUp && this.#corrupt(),
      stepSharedClock: () => this.#stepSharedClock(),
      shiftLoad: () => did(() => (this.#isLoadUneven = !this.#isLoadUneven)),
      stepLocalClock: () => this.#stepLocalClock(replica),
      crash: () => this.#running.length > 1 && replica.status === 'running' && this.#crash(replica),
      add: () => this.replicas.length < MAX_REPLICAS && this.#add(),
      remove: () => this.#running.length > 1 && replica.status === 'running' && this.#remove(replica),
      unban: () => isUp && client.status === 'ready' && !client.isPartitioned && this.#unban(replica),
    }
    if (!happens[name]()) return
    this.tally.add(name)
    this.parts.log?.(`${this.time.nowMs} ms: ${name} (${replica.name})`)
  }

  get #running(): SimulatedReplica[] {
    return this.replicas.filter(({ status }) => status === 'running')
  }

  #request(): boolean {
    const [first] = this.#running
    if (!first) return false
    const replica = this.#isLoadUneven ? first : this.random.pick(this.#running)
    const keyId = this.#pickKeyId()
    for (let count = this.random.isLucky(0.05) ? this.random.integer(5, 25) : 1; count > 0; count--) this.#track(this.#take(replica, keyId))
    return true
  }

  async #take(replica: SimulatedReplica, keyId: string): Promise<void> {
    const rules = { ...this.#rulesOf(keyId) }
    const sentMs = this.time.nowMs
    const verdict = await replica.quotas.take(keyId, rules, { version: 1 })
    if (replica.status === 'crashed') return
    if (verdict.kind === 'stale') throw new Error('No key has changed')
    this.#checkResponse(verdict, rules, this.time.nowMs - sentMs)
    this.parts.log?.(`${this.time.nowMs} ms: ${replica.name} ${keyId} ${JSON.stringify(verdict)}`)
    this.ledger.addVerdict(replica, keyId, rules, verdict)
    const { decidedByRedis, decidedLocally } = replica.store
    this.tally.add(`${decidedByRedis.has(rules) ? 'shared' : decidedLocally.has(rules) ? 'local' : 'cached'}: ${verdict.kind}`)
    if ('charge' in verdict && this.random.isLucky(0.06)) await this.#refund(replica, keyId, verdict.charge, rules)
  }

  async #refund(replica: SimulatedReplica, keyId: string, charge: Charge, rules: QuotaRules): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, this.random.integer(0, 500)))
    if (replica.status === 'crashed' || replica.status === 'stopped') return
    this.ledger.addRefundCall(replica, keyId, charge)
    await replica.quotas.refund(keyId, charge, rules)
    this.tally.add('refund')
  }

  #checkResponse(verdict: Verdict, { limits }: QuotaRules, durationMs: number): void {
    check(durationMs <= 100, () => `a decision took ${durationMs} ms`)
    const { minute, day, binding, nowMs } = verdict.quota
    for (const { limit, remaining } of [minute, day, binding])
      check(remaining >= 0 && remaining <= limit, () => `${remaining} remain of ${limit}`)
    check(minute.limit === limits.minute && day.limit === limits.day, () => 'the limits are wrong')
    const errorMs = nowMs - this.redis.script.nowMs()
    if (this.isCalm) check(Math.abs(errorMs) <= 10, () => `the clock of a decision is wrong by ${errorMs} ms`)
    if (!('retryAfterSeconds' in verdict)) return
    const { retryAfterSeconds } = verdict
    const waitMs = binding.resetSeconds * 1000 - nowMs
    check(
      retryAfterSeconds >= 1 && Math.abs(retryAfterSeconds * 1000 - waitMs) < 1000,
      () => `Retry-After is ${retryAfterSeconds}, not ${waitMs} ms`,
    )
  }

  #start(): boolean {
    const recovered = this.random.pick<Recovered>(['everything', 'behind', 'nothing'])
    this.tally.add(`recovered ${recovered}`)
    return this.#lose(() => this.redis.start(recovered))
  }

  #lose(lose: () => void): boolean {
    const isUndisturbed = (replica: SimulatedReplica) =>
      replica.status === 'running' &&
      !replica.client.isPartitioned &&
      replica.client.maxDelayMs < SLOW_MS &&
      this.time.nowMs - (this.#disturbedMs.get(replica) ?? Number.NEGATIVE_INFINITY) > RECOVERY_MS
    this.ledger.addLoss(this.replicas.filter(isUndisturbed))
    return did(lose)
  }

  /** Only the replica that finds it repairs the hash. */
  #corrupt(): boolean {
    this.#excuseAll()
    const keyId = this.#pickKeyId()
    this.ledger.addCorruption(keyId)
    return did(() => this.redis.script.corrupt(this.#keys.quota(keyId)))
  }

  #disturb(replica: SimulatedReplica, disturb: () => void): boolean {
    this.#excuse(replica)
    return did(disturb)
  }

  #excuseAll(): boolean {
    for (const replica of this.replicas) this.#excuse(replica)
    return true
  }

  #excuse(replica: SimulatedReplica): void {
    this.#disturbedMs.set(replica, this.time.nowMs)
    this.ledger.excuse(replica)
  }

  #stepSharedClock(): boolean {
    this.#excuseAll()
    this.#hasClockStepped = true
    return did(() => (this.#sharedStepMs = this.#chooseClockErrorMs()))
  }

  /** A replica that has not reached Redis yet uses its own clock. */
  #stepLocalClock(replica: SimulatedReplica): boolean {
    this.ledger.addUnreported(replica)
    return did(() => (replica.clock.stepMs = this.#chooseClockErrorMs()))
  }

  #crash(replica: SimulatedReplica): boolean {
    this.ledger.excuse(replica)
    this.ledger.addUnreported(replica)
    replica.crash()
    return did(() => this.replicas.splice(this.replicas.indexOf(replica), 1))
  }

  #add(): boolean {
    const client = new SimulatedClient(this.redis, this.random)
    const { time } = this
    const startMs = this.#startMs
    const clock = {
      stepMs: 0,
      nowMs: () => startMs + time.nowMs + clock.stepMs,
      monotonicMs: () => 1_000_000 + time.nowMs,
    }
    this.#added += 1
    const replica = new SimulatedReplica(`replica ${this.#added}`, client, this.#keys, clock, 10, this.parts)
    replica.store.onUnconfirmedReport = (keyId, { delta }) => delta && this.ledger.addUnconfirmedReport(keyId, delta)
    this.#track(replica.start())
    return did(() => this.replicas.push(replica))
  }

  #remove(replica: SimulatedReplica): boolean {
    this.ledger.excuse(replica)
    replica.status = 'draining'
    const stop = async () => {
      await new Promise((resolve) => setTimeout(resolve, 700))
      if (replica.status === 'draining') await replica.stop()
      this.ledger.addUnreported(replica)
      if (this.replicas.includes(replica)) this.replicas.splice(this.replicas.indexOf(replica), 1)
    }
    return did(() => this.#track(stop()))
  }

  #unban({ quotaHash }: SimulatedReplica): boolean {
    const unban = () => quotaHash.unban(this.#pickKeyId()).catch(() => this.tally.add('failed unban'))
    return did(() => this.#track(unban().then(() => undefined)))
  }

  /** Ends all faults and waits until everything is reported. */
  async #recover(): Promise<void> {
    const { redis } = this
    if (redis.status === 'down') this.#step('start')
    if (redis.status === 'frozen') this.#step('thaw')
    redis.isLoading = false
    for (const { client } of this.replicas) Object.assign(client, { isPartitioned: false, maxDelayMs: 3 })
    await this.time.advanceMs(12_000)
    for (const { fallback } of this.#running) this.#track(fallback.reportPendingUsage().then(() => undefined))
    await this.time.advanceMs(200)
    if (this.#failure) throw this.#failure.error
  }

  #checkEnd(): void {
    for (const { admitted, refundCalls, limit, shares } of this.ledger.windows.values()) {
      if (admitted > 0) this.tally.add('window')
      if (admitted - refundCalls > limit) this.tally.add('window with more than its limit')
      if (admitted - refundCalls > 2 * limit + shares.size) this.tally.add('window with more than twice its limit')
    }
    for (const { name, breaker, registry } of this.#running) {
      check(breaker.isUp, () => `${name} does not use Redis again`)
      check(
        this.#hasClockStepped || registry.count === this.#running.length,
        () => `${name} counts ${registry.count} instead of ${this.#running.length} replicas`,
      )
    }
    for (const { name } of this.replicas.filter(({ status }) => status === 'starting')) check(false, () => `${name} has not started`)
    if (this.#hasClockStepped) return
    for (const keyId of this.#rules.keys()) this.ledger.checkEnd(keyId, this.redis.script.peek(this.#keys.quota(keyId)))
    this.tally.add('end without clock steps')
  }

  /** Also after a failure, so that nothing is left for the next simulation. */
  async #close(): Promise<void> {
    for (const replica of this.replicas.splice(0)) replica.crash()
    await this.time.advanceMs(2_000)
  }

  #track(work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) =>
        this.#attempt(() => {
          throw error
        }),
      )
      .finally(() => this.#requests.delete(tracked))
    this.#requests.add(tracked)
  }

  /** Only the first error is thrown. */
  #attempt(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#failure ??= { error }
    }
  }

  #pickKeyId(): string {
    return this.random.pick([...this.#rules.keys()])
  }

  #rulesOf(keyId: string): QuotaRules {
    const rules = this.#rules.get(keyId)
    if (!rules) throw new Error(`There is no key ${keyId}`)
    return rules
  }

  #chooseClockErrorMs(): number {
    return this.random.integer(-MAX_CLOCK_ERROR_MS, MAX_CLOCK_ERROR_MS)
  }

  /** Most simulations start shortly before a window ends. */
  #chooseStartMs(keyId: string): number {
    const noonMs = 12 * 60 * MINUTE_MS - getMinutePhaseSeconds(keyId) * 1000
    return this.random.pick([noonMs + 1_000, noonMs - 15_000, noonMs - 30_000, 24 * 60 * MINUTE_MS - 20_000])
  }

  #chooseMs(): number {
    const { random } = this
    const kind = random.pickWeighted({ none: 60, short: 20, medium: 14, long: 5, longer: 1 })
    const ranges = { none: [0, 0], short: [1, 4], medium: [20, 100], long: [300, 1_500], longer: [3_000, 7_000] } as const
    const [min, max] = ranges[kind]
    return random.integer(min, max)
  }
}

function someRules(random: Random): QuotaRules {
  const minute = random.integer(3, 20)
  return someQuotaRules({
    limits: { minute, day: random.integer(minute, 120) },
    ban: someBanRules({ graceMs: 200, minStrikes: random.pick([5, 30, 100]), firstMs: 4_000, longestMs: 30_000, forgetAfterMs: 45_000 }),
  })
}

function did(change: () => unknown): boolean {
  change()
  return true
}
