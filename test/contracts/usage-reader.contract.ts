import { expect } from 'chai'
import type { QuotaControl } from '../../src/core/ports/quota-control.js'
import type { QuotaStore } from '../../src/core/ports/quota-store.js'
import type { UsageReader } from '../../src/core/ports/usage-reader.js'
import type { KeyVersion, QuotaRules, QuotaUsage } from '../../src/core/quota.js'
import { someBanRules, someQuotaRules } from '../support/builders.js'
import { MovableClock } from '../support/movable-clock.js'
import { readUsed } from '../support/read-used.js'
import { takeOne } from '../support/take-one.js'
import type { OpenAdapter, Outage } from './open-adapter.js'

/** Adapters that share their state. */
export interface UsageAdapters {
  readonly reader: UsageReader
  readonly quotas: QuotaStore
  readonly control: QuotaControl
}

const RULES = someQuotaRules({ limits: { minute: 2, day: 10 } })
const BANNING = someQuotaRules({ limits: { minute: 2, day: 10 }, ban: someBanRules({ minStrikes: 2, graceMs: 0 }) })
const MIDNIGHT_SECONDS = Date.UTC(2026, 10, 21) / 1000

export function describeUsageReader(
  name: string,
  open: (clock: MovableClock) => Promise<OpenAdapter<UsageAdapters>>,
  outage?: Outage,
): void {
  describe(`the usage reader ${name}`, () => {
    let clock: MovableClock
    let opened: OpenAdapter<UsageAdapters>
    let reader: UsageReader
    let quotas: QuotaStore
    let control: QuotaControl

    beforeEach(async () => {
      clock = new MovableClock()
      opened = await open(clock)
      ;({ reader, quotas, control } = opened.port)
    })

    afterEach(() => opened.close())

    async function read(rules: QuotaRules = RULES, keyVersion: KeyVersion = { version: 1 }): Promise<QuotaUsage> {
      const usage = await reader.readUsage('key_one', rules, keyVersion)
      if ('kind' in usage) throw new Error('The record is stale')
      return usage
    }

    it('returns 0 for an unused key, with the ends of the current windows', async () => {
      const { windows, ...usage } = await read()
      expect(usage).to.include({ strikes: 0, banLevel: 0 }).and.not.to.have.property('bannedUntilMs')
      expect(windows.minute).to.include({ limit: 2, used: 0, remaining: 2 })
      expect(windows.minute.resetSeconds * 1000 - clock.nowMs()).to.be.within(1, 60_000)
      expect(windows.day).to.deep.equal({ limit: 10, used: 0, remaining: 10, resetSeconds: MIDNIGHT_SECONDS })
    })

    it('returns what every replica has charged, in the quota of the last decision, and charges nothing itself', async () => {
      const other = await opened.reopen()
      const verdict = await takeOne(quotas, 'key_one', RULES)
      for (let count = 0; count < 20; count++) {
        const usage = await read()
        expect(readUsed(usage)).to.deep.equal([1, 1])
        expect(usage.quota).to.deep.equal(verdict.quota)
      }
      await takeOne(other.quotas, 'key_one', RULES)
      expect(readUsed(await read())).to.deep.equal([2, 2])
    })

    it('returns the usage of an exhausted key, which gets no strike', async () => {
      for (let count = 0; count < 3; count++) await takeOne(quotas, 'key_one', RULES)
      clock.advanceMs(1_001)
      for (let count = 0; count < 5; count++) expect(await read()).to.nested.include({ strikes: 0, 'windows.minute.remaining': 0 })
    })

    it('returns a ban until it ends', async () => {
      for (let count = 0; count < 3; count++) await takeOne(quotas, 'key_one', BANNING)
      for (let count = 0; count < 2; count++) {
        clock.advanceMs(1)
        await takeOne(quotas, 'key_one', BANNING)
      }
      const bannedUntilMs = clock.nowMs() + 60_000
      expect(await read(BANNING)).to.nested.include({ bannedUntilMs, 'windows.minute.remaining': 0, 'windows.day.used': 2 })
      clock.advanceMs(60_000)
      expect(await read(BANNING)).not.to.have.property('bannedUntilMs')
    })

    it('returns 0 in a new minute and a new day', async () => {
      await takeOne(quotas, 'key_one', RULES)
      clock.advanceSeconds(60)
      expect(readUsed(await read())).to.deep.equal([0, 1])
      clock.advanceSeconds(86_400)
      expect(readUsed(await read())).to.deep.equal([0, 0])
    })

    it('reports a stale record, and accepts one that was read after the known version was found', async () => {
      await control.announce('key_one', 3)
      expect(await reader.readUsage('key_one', RULES, { version: 2 })).to.deep.equal({ kind: 'stale', knownVersion: 3 })
      expect(readUsed(await read(RULES, { version: 3 }))).to.deep.equal([0, 0])
      expect(readUsed(await read(RULES, { version: 2, readSince: 3 }))).to.deep.equal([0, 0])
    })

    if (outage) {
      describe('during an outage', () => {
        afterEach(() => outage.end())

        it('returns what this replica knows and can still grant, like its decisions', async () => {
          await takeOne(quotas, 'key_one', RULES)
          await read()
          await outage.begin()
          const before = await read()
          const verdict = await takeOne(quotas, 'key_one', RULES)
          expect(verdict.kind).to.equal('admitted')
          const after = await read()
          expect(after.quota.minute).to.deep.equal(verdict.quota.minute)
          expect(after.windows.minute.remaining).to.equal(before.windows.minute.remaining - 1)
          expect(after.windows.minute.used).to.equal(before.windows.minute.used + 1)
        })
      })
    }
  })
}
