import { expect } from 'chai'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { QuotaControl } from '../../src/core/ports/quota-control.js'
import type { QuotaStore } from '../../src/core/ports/quota-store.js'
import { MovableClock } from '../support/movable-clock.js'
import { readUsed } from '../support/read-used.js'
import { takeOne } from '../support/take-one.js'
import { someBanRules, someQuotaRules } from '../support/builders.js'
import type { OpenAdapter, Outage } from './open-adapter.js'
import { rejection } from './rejection.js'

/** A quota control and a quota store that share their state. */
interface QuotaAdapters {
  readonly quotas: QuotaStore
  readonly control: QuotaControl
}

const BANNING = someQuotaRules({ limits: { minute: 2, day: 10 }, ban: someBanRules({ minStrikes: 2, graceMs: 0 }) })
const DAY_MS = 86_400_000

export function describeQuotaControl(
  name: string,
  open: (clock: MovableClock) => Promise<OpenAdapter<QuotaAdapters>>,
  outage?: Outage,
): void {
  describe(`the quota control ${name}`, () => {
    let clock: MovableClock
    let opened: OpenAdapter<QuotaAdapters>
    let quotas: QuotaStore
    let control: QuotaControl

    beforeEach(async () => {
      clock = new MovableClock()
      opened = await open(clock)
      ;({ quotas, control } = opened.port)
    })

    afterEach(() => opened.close())

    /** Exhausts the minute and continues until the key is banned. */
    async function ban(keyId = 'key_one'): Promise<void> {
      for (let count = 0; count < 3; count++) await takeOne(quotas, keyId, BANNING)
      for (let count = 0; count < 2; count++) {
        clock.advanceMs(1)
        await takeOne(quotas, keyId, BANNING)
      }
    }

    describe('usage', () => {
      it('of an unused key is 0, with its whole quota left', async () => {
        const usage = await control.usage('key_one', BANNING)
        expect(readUsed(usage)).to.deep.equal([0, 0])
        expect(usage).to.include({ strikes: 0, banLevel: 0 })
        expect(usage).not.to.have.property('bannedUntilMs')
        expect([usage.quota.minute.remaining, usage.quota.day.remaining]).to.deep.equal([2, 10])
      })

      it('shows charges and strikes, and charges nothing itself', async () => {
        const rules = someQuotaRules({ limits: { minute: 2, day: 10 } })
        for (let count = 0; count < 3; count++) await takeOne(quotas, 'key_one', rules)
        clock.advanceMs(1_001)
        await takeOne(quotas, 'key_one', rules)
        for (let count = 0; count < 20; count++) {
          const usage = await control.usage('key_one', rules)
          expect(readUsed(usage)).to.deep.equal([2, 2])
          expect(usage).to.include({ strikes: 1 })
          expect([usage.quota.minute.remaining, usage.quota.day.remaining]).to.deep.equal([0, 8])
        }
      })

      it('starts at 0 in a new minute and a new day', async () => {
        await takeOne(quotas, 'key_one', BANNING)
        clock.advanceSeconds(60)
        expect(readUsed(await control.usage('key_one', BANNING))).to.deep.equal([0, 1])
        clock.advanceMs(DAY_MS)
        expect(readUsed(await control.usage('key_one', BANNING))).to.deep.equal([0, 0])
      })

      it('shows a ban until it ends, and its level after that', async () => {
        await ban()
        expect(await control.usage('key_one', BANNING)).to.include({ bannedUntilMs: clock.nowMs() + 60_000, banLevel: 1 })
        clock.advanceMs(60_000)
        const usage = await control.usage('key_one', BANNING)
        expect(usage).to.include({ banLevel: 1 })
        expect(usage).not.to.have.property('bannedUntilMs')
      })
    })

    describe('unban', () => {
      it('lets another replica admit the key with the next request, and usage stays', async () => {
        await ban()
        const another = (await opened.reopen()).quotas
        clock.advanceSeconds(40)
        expect((await takeOne(another, 'key_one', BANNING)).kind).to.equal('banned')
        expect(await control.unban('key_one')).to.equal('lifted')
        const verdict = await takeOne(another, 'key_one', BANNING)
        expect(verdict.kind).to.equal('admitted')
        expect(verdict.quota.day.remaining).to.equal(10 - 2 - 1)
      })

      it('forgets earlier bans, so that the next ban is a first ban', async () => {
        await ban()
        await control.unban('key_one')
        clock.advanceSeconds(60)
        await ban()
        expect(await control.usage('key_one', BANNING)).to.include({ bannedUntilMs: clock.nowMs() + 60_000, banLevel: 1 })
      })

      it('returns not-banned for an unused key, a key without a ban and a key whose ban has ended', async () => {
        expect(await control.unban('key_unseen')).to.equal('not-banned')
        await takeOne(quotas, 'key_one', BANNING)
        expect(await control.unban('key_one')).to.equal('not-banned')
        await ban('key_two')
        clock.advanceMs(60_000)
        expect(await control.unban('key_two')).to.equal('not-banned')
      })

      it('does not lift the bans of other keys', async () => {
        await ban('key_one')
        await ban('key_two')
        await control.unban('key_one')
        expect((await takeOne(quotas, 'key_two', BANNING)).kind).to.equal('banned')
      })
    })

    describe('announce', () => {
      it('makes older records of the key stale on every replica at once, and a stale record is not charged', async () => {
        const replicas = [quotas, (await opened.reopen()).quotas]
        for (const replica of replicas) await takeOne(replica, 'key_one', BANNING, { version: 1 })
        await control.announce('key_one', 2)
        for (const replica of replicas)
          expect(await replica.take('key_one', BANNING, { version: 1 })).to.deep.equal({ kind: 'stale', knownVersion: 2 })
        expect(readUsed(await control.usage('key_one', BANNING))).to.deep.equal([2, 2])
      })

      it('applies to an unused key, too, and the announced and later records are not stale', async () => {
        await control.announce('key_one', 5)
        expect(await quotas.take('key_one', BANNING, { version: 4 })).to.deep.equal({ kind: 'stale', knownVersion: 5 })
        for (const version of [5, 6]) expect((await quotas.take('key_one', BANNING, { version })).kind).to.equal('admitted')
      })

      it('has no effect if a later version was announced before', async () => {
        await control.announce('key_one', 3)
        await control.announce('key_one', 2)
        expect(await quotas.take('key_one', BANNING, { version: 2 })).to.deep.equal({ kind: 'stale', knownVersion: 3 })
      })

      it('is remembered for 10 s, as long as a replica may cache an older record', async () => {
        await control.announce('key_one', 2)
        clock.advanceSeconds(10)
        expect(await quotas.take('key_one', BANNING, { version: 1 })).to.deep.equal({ kind: 'stale', knownVersion: 2 })
      })

      it('does not affect other keys', async () => {
        await control.announce('key_one', 2)
        expect((await quotas.take('key_two', BANNING, { version: 1 })).kind).to.equal('admitted')
      })

      it('does not make a record stale that was just read', async () => {
        await control.announce('key_one', 3)
        expect((await quotas.take('key_one', BANNING, { version: 2, readSince: 3 })).kind).to.equal('admitted')
      })
    })

    it('an announced version survives midnight', async () => {
      clock.moveTo(Date.UTC(2026, 10, 20, 23, 59, 59))
      await takeOne(quotas, 'key_one', BANNING, { version: 1 })
      await control.announce('key_one', 2)
      clock.advanceSeconds(2)
      expect(await quotas.take('key_one', BANNING, { version: 1 })).to.deep.equal({ kind: 'stale', knownVersion: 2 })
    })

    it('a record that decided makes older records stale without an announcement', async () => {
      await quotas.take('key_one', BANNING, { version: 2 })
      expect(await quotas.take('key_one', BANNING, { version: 1 })).to.deep.equal({ kind: 'stale', knownVersion: 2 })
    })

    if (outage) {
      describe('during an outage', () => {
        afterEach(() => outage.end())

        it('throws StoreUnavailable from every method', async () => {
          await ban()
          await outage.begin()
          const calls = [() => control.usage('key_one', BANNING), () => control.unban('key_one'), () => control.announce('key_one', 2)]
          for (const call of calls) expect(await rejection(call())).to.be.instanceOf(StoreUnavailable)
        })
      })
    }
  })
}
