import { expect } from 'chai'
import { FallbackQuotaStore } from '../../src/adapters/redis/fallback-quota-store.js'
import { RedisUnavailable } from '../../src/adapters/redis/redis-circuit-breaker.js'
import type { Report, RedisQuotaStore } from '../../src/adapters/redis/redis-quota-store.js'
import { mergeQuotaStates } from '../../src/core/merge-quota-states.js'
import type { Clock } from '../../src/core/ports/clock.js'
import type { StaleKeyRecord } from '../../src/core/ports/quota-store.js'
import type { Decision, KeyVersion, Quota, QuotaRules, QuotaState, Verdict } from '../../src/core/quota.js'
import { rollForward } from '../../src/core/quota.js'
import type { Instant } from '../../src/core/window.js'
import { getWindowNumber, mapWindows } from '../../src/core/window.js'
import { runSimulations } from '../support/simulation/run-simulations.js'
import { ScriptModel } from '../support/simulation/script-model.js'
import { ObservedQuotaStore } from '../support/simulation/simulated-replica.js'
import type { Parts } from '../support/simulation/simulation.js'

const SEED = 1
/** Some defects need a rare coincidence. */
const STEPS = 300_000

class OverwritingScript extends ScriptModel {
  protected override merge(_stored: QuotaState, known: QuotaState): QuotaState {
    return known
  }
}

class NonRestoringScript extends ScriptModel {
  protected override merge(stored: QuotaState): QuotaState {
    return stored
  }
}

class BanForgettingScript extends ScriptModel {
  protected override merge(stored: QuotaState, known: QuotaState): QuotaState {
    return { ...mergeQuotaStates(stored, known), bannedUntilMs: 0 }
  }
}

class BanRestoringScript extends ScriptModel {
  protected override merge(stored: QuotaState, known: QuotaState): QuotaState {
    return { ...mergeQuotaStates(stored, known), bannedUntilMs: Math.max(stored.bannedUntilMs, known.bannedUntilMs) }
  }
}

class EpochIgnoringScript extends ScriptModel {
  protected override isEpochChanged(): boolean {
    return false
  }
}

class DayChargingScript extends ScriptModel {
  protected override decide(stored: QuotaState, rules: QuotaRules, at: Instant): Decision {
    const { verdict, state } = super.decide(stored, rules, at)
    return { verdict, state: verdict.kind === 'exhausted' ? { ...state, used: { ...state.used, day: state.used.day + 1 } } : state }
  }
}

class WindowReopeningScript extends ScriptModel {
  protected override rollForward(stored: QuotaState, ban: QuotaRules['ban'], at: Instant): QuotaState {
    const window = mapWindows((name) => getWindowNumber(name, at))
    const used = mapWindows((name) => (stored.window[name] === window[name] ? stored.used[name] : 0))
    return { ...rollForward(stored, ban, at), window, used }
  }
}

class TwiceReportingStore extends ObservedQuotaStore {
  override async reconcile(keyId: string, rules: QuotaRules, report: Report): Promise<Quota> {
    await super.reconcile(keyId, rules, report)
    return super.reconcile(keyId, rules, report)
  }
}

class NonReportingStore extends ObservedQuotaStore {
  override reconcile(keyId: string, rules: QuotaRules, report: Report): Promise<Quota> {
    return super.reconcile(keyId, rules, (report.delta?.used.day ?? 0) > 0 ? {} : report)
  }
}

class OverconfidentStore extends ObservedQuotaStore {
  override async take(keyId: string, rules: QuotaRules, version: KeyVersion, report?: Report): Promise<Verdict | StaleKeyRecord> {
    try {
      return await super.take(keyId, rules, version, report)
    } catch (cause) {
      throw cause instanceof RedisUnavailable ? new RedisUnavailable(cause.message, { maybeExecuted: false, cause }) : cause
    }
  }
}

class EpochIgnoringStore extends ObservedQuotaStore {
  override openIfEpochChanged(): void {}
}

/** Forgets all local decisions. */
abstract class ForgetfulFallback extends FallbackQuotaStore {
  #memory: FallbackQuotaStore

  constructor(
    protected readonly redisStore: RedisQuotaStore,
    private readonly counted: { readonly count: number },
    private readonly localClock: Clock,
  ) {
    super(redisStore, counted, localClock)
    this.#memory = new FallbackQuotaStore(redisStore, counted, localClock)
  }

  override take(keyId: string, rules: QuotaRules, keyVersion: KeyVersion): Promise<Verdict | StaleKeyRecord> {
    return this.#memory.take(keyId, rules, keyVersion)
  }

  protected forget(): void {
    this.#memory = new FallbackQuotaStore(this.redisStore, this.counted, this.localClock)
  }
}

class ShareRenewingFallback extends ForgetfulFallback {
  constructor(redis: RedisQuotaStore, replicas: { readonly count: number }, clock: Clock) {
    super(redis, replicas, clock)
    redis.onUp(() => this.forget())
  }
}

class BanForgettingFallback extends ForgetfulFallback {
  override async take(keyId: string, rules: QuotaRules, keyVersion: KeyVersion): Promise<Verdict | StaleKeyRecord> {
    const verdict = await super.take(keyId, rules, keyVersion)
    if (verdict.kind === 'banned' && !this.redisStore.isUp(keyId)) this.forget()
    return verdict
  }
}

const LOST_USAGE = /knew that \d+ were used, but Redis decides with/
const LOST_USAGE_OR_BOUND = /knew that \d+ were used, but Redis decides with|Redis granted more than/
const LOST_BAN = /was banned, but Redis admitted|during a ban/
const LOST_USAGE_OR_BAN = /knew that/

const DEFECTS: Readonly<Record<string, { readonly parts: Parts; readonly failure: RegExp }>> = {
  'a replica that overwrites what others have restored': { parts: { script: OverwritingScript }, failure: LOST_USAGE_OR_BOUND },
  'lost data that is not restored': { parts: { script: NonRestoringScript }, failure: LOST_USAGE_OR_BAN },
  'a ban that is not restored': { parts: { script: BanForgettingScript }, failure: LOST_BAN },
  'a lifted ban that is restored': { parts: { script: BanRestoringScript }, failure: /a lifted ban of .* applies again/ },
  'a replica that does not wait until others have restored what they know': {
    parts: { options: { settleMs: 0 } },
    failure: LOST_USAGE_OR_BAN,
  },
  'a script that ignores the epoch': { parts: { script: EpochIgnoringScript }, failure: LOST_USAGE },
  'a heartbeat that ignores the epoch': { parts: { store: EpochIgnoringStore }, failure: LOST_USAGE_OR_BAN },
  'a day that is charged although the minute is exhausted': { parts: { script: DayChargingScript }, failure: /count as used|too early/ },
  'a clock that reopens a window': { parts: { script: WindowReopeningScript }, failure: /Redis granted more|knew that/ },
  'usage that is reported twice': {
    parts: { store: TwiceReportingStore },
    failure: /count as used, but at most|more than \d+ requests were granted/,
  },
  'usage that is reported although Redis may have counted it': {
    parts: { store: OverconfidentStore },
    failure: /count as used, but at most/,
  },
  'usage that is not reported': { parts: { store: NonReportingStore }, failure: /usage was not reported/ },
  'a share that is granted in each outage': { parts: { fallback: ShareRenewingFallback }, failure: /more than its share/ },
  'a share that ignores the other replicas': { parts: { count: () => 1 }, failure: /more than its share/ },
  'a replica that forgets the bans it imposed': { parts: { fallback: BanForgettingFallback }, failure: /which it had banned|its share/ },
}

describe('A simulation of several replicas', function () {
  this.timeout(120_000)

  for (const [defect, { parts, failure }] of Object.entries(DEFECTS)) {
    it(`detects ${defect}`, async () => {
      const outcome = await runSimulations(SEED, STEPS, parts).catch((error: unknown) => error)
      expect(outcome).to.be.an('error')
      expect((outcome as Error).message).to.match(failure)
    })
  }
})
