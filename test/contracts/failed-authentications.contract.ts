import { expect } from 'chai'
import type { FailedAuthentications } from '../../src/core/ports/failed-authentications.js'
import { MovableClock } from '../support/movable-clock.js'
import type { OpenAdapter, Outage } from './open-adapter.js'

const ADDRESS = '192.0.2.1'
const PER_MINUTE = 5

export function describeFailedAuthentications(
  name: string,
  open: (perMinute: number, clock: MovableClock) => Promise<OpenAdapter<FailedAuthentications>>,
  outage?: Outage,
  /** How many commands the engine has executed so far. */
  countCommands?: () => Promise<number>,
): void {
  describe(`the failed authentications of an IP address ${name}`, () => {
    let clock: MovableClock
    let opened: OpenAdapter<FailedAuthentications>
    let failures: FailedAuthentications

    beforeEach(async () => {
      clock = new MovableClock()
      opened = await open(PER_MINUTE, clock)
      failures = opened.port
    })

    afterEach(() => opened.close())

    async function useUp(address: string): Promise<void> {
      for (let count = 0; count < PER_MINUTE; count++) await failures.count(address)
    }

    /** Unix time in seconds at which the current minute ends. */
    const minuteEndSeconds = () => Math.floor(clock.nowMs() / 60_000) * 60 + 60

    it('leave the full limit for a new IP address, until the minute ends', async () => {
      const untouched = { nowMs: clock.nowMs(), limit: PER_MINUTE, remaining: PER_MINUTE, resetSeconds: minuteEndSeconds() }
      expect(await failures.peek(ADDRESS)).to.deep.equal(untouched)
    })

    it('are admitted up to the limit, with one fewer remaining each time', async () => {
      for (const remaining of [4, 3, 2, 1, 0]) {
        const quota = { nowMs: clock.nowMs(), limit: PER_MINUTE, remaining, resetSeconds: minuteEndSeconds() }
        expect(await failures.count(ADDRESS)).to.deep.equal({ admitted: true, quota })
        expect(await failures.peek(ADDRESS)).to.deep.equal(quota)
      }
      const quota = { nowMs: clock.nowMs(), limit: PER_MINUTE, remaining: 0, resetSeconds: minuteEndSeconds() }
      for (let count = 0; count < 3; count++) expect(await failures.count(ADDRESS)).to.deep.equal({ admitted: false, quota })
      expect(await failures.peek(ADDRESS)).to.deep.equal(quota)
    })

    it('are not counted by a peek', async () => {
      for (let count = 0; count < 3 * PER_MINUTE; count++) expect((await failures.peek(ADDRESS)).remaining).to.equal(PER_MINUTE)
      expect((await failures.count(ADDRESS)).quota.remaining).to.equal(PER_MINUTE - 1)
    })

    it('do not count for another IP address, however similar', async () => {
      const others = ['192.0.2.10', '192.0.2', '192.0.2.1 ', '2001:db8::/64', '2001:db8:0:1::/64', '', '__proto__', '192.0.2.1:1']
      await useUp(ADDRESS)
      for (const other of others) expect((await failures.peek(other)).remaining).to.equal(PER_MINUTE)
      for (const other of others) {
        expect((await failures.count(other)).quota.remaining).to.equal(PER_MINUTE - 1)
      }
      expect((await failures.peek(ADDRESS)).remaining).to.equal(0)
    })

    it('expire when the next minute begins, and not a millisecond earlier', async () => {
      await useUp(ADDRESS)
      clock.moveTo(minuteEndSeconds() * 1000 - 1)
      expect((await failures.peek(ADDRESS)).remaining).to.equal(0)
      expect((await failures.count(ADDRESS)).admitted).to.equal(false)
      clock.advanceMs(1)
      expect((await failures.peek(ADDRESS)).remaining).to.equal(PER_MINUTE)
      expect(await failures.count(ADDRESS)).to.have.nested.property('quota.remaining', PER_MINUTE - 1)
    })

    it('that were rejected do not count in the next minute', async () => {
      await useUp(ADDRESS)
      for (let count = 0; count < 10 * PER_MINUTE; count++) await failures.count(ADDRESS)
      clock.advanceSeconds(60)
      for (const remaining of [4, 3, 2, 1, 0]) expect((await failures.count(ADDRESS)).quota.remaining).to.equal(remaining)
      expect((await failures.count(ADDRESS)).admitted).to.equal(false)
    })

    it('report the same reset from the first to the last millisecond of a minute, admitted or not', async () => {
      clock.moveTo(minuteEndSeconds() * 1000)
      const resetSeconds = minuteEndSeconds()
      for (const ms of [0, 1, 499, 500, 999, 1, 17_000, 20_000, 20_000, 999]) {
        clock.advanceMs(ms)
        expect((await failures.peek(ADDRESS)).resetSeconds).to.equal(resetSeconds)
        expect((await failures.count(ADDRESS)).quota.resetSeconds).to.equal(resetSeconds)
      }
      expect(clock.nowMs()).to.equal(resetSeconds * 1000 - 1)
      clock.advanceMs(1)
      expect((await failures.peek(ADDRESS)).resetSeconds).to.equal(resetSeconds + 60)
    })

    it('are admitted exactly up to the limit when 50 are concurrent on two replicas', async () => {
      const replicas = [failures, await opened.reopen()] as const
      const counted = await Promise.all(
        Array.from({ length: 50 }, (_, index) => (replicas[index % 2] as FailedAuthentications).count(ADDRESS)),
      )
      const admitted = counted.filter((count) => count.admitted)
      expect(admitted.map(({ quota }) => quota.remaining).toSorted((a, b) => b - a)).to.deep.equal([4, 3, 2, 1, 0])
      for (const { quota } of counted.filter((count) => !count.admitted)) expect(quota.remaining).to.equal(0)
      for (const replica of replicas) expect((await replica.peek(ADDRESS)).remaining).to.equal(0)
    })

    if (countCommands) {
      const commandsDuring = async (work: () => Promise<void>): Promise<number> => {
        const before = await countCommands()
        await work()
        return (await countCommands()) - before
      }

      it('cost no command once the limit is reached, neither to count nor to peek, until the minute ends', async () => {
        await useUp(ADDRESS)
        const commands = await commandsDuring(async () => {
          for (let time = 0; time < 1_000; time++) {
            expect(await failures.count(ADDRESS)).to.deep.include({ admitted: false })
            expect(await failures.peek(ADDRESS)).to.deep.include({ limit: PER_MINUTE, remaining: 0, resetSeconds: minuteEndSeconds() })
          }
          clock.moveTo(minuteEndSeconds() * 1000 - 1)
          expect((await failures.peek(ADDRESS)).remaining).to.equal(0)
        })
        expect(commands).to.equal(0)

        clock.advanceMs(1)
        const inNextMinute = await commandsDuring(async () => {
          expect((await failures.peek(ADDRESS)).remaining).to.equal(PER_MINUTE)
        })
        expect(inNextMinute).to.be.above(0)
      })

      for (const [what, learn] of [
        ['a count', async (replica: FailedAuthentications) => (await replica.count(ADDRESS)).quota],
        ['a peek', async (replica: FailedAuthentications) => replica.peek(ADDRESS)],
      ] as const) {
        it(`that reached the limit on another replica cost no command after ${what} on this one`, async () => {
          const other = await opened.reopen()
          await useUp(ADDRESS)
          expect((await learn(other)).remaining).to.equal(0)
          const commands = await commandsDuring(async () => {
            for (let time = 0; time < 100; time++) {
              expect((await other.count(ADDRESS)).admitted).to.equal(false)
              expect((await other.peek(ADDRESS)).remaining).to.equal(0)
            }
          })
          expect(commands).to.equal(0)
        })
      }

      it('are still read from the store while one remains', async () => {
        for (let count = 1; count < PER_MINUTE; count++) await failures.count(ADDRESS)
        const other = await opened.reopen()
        expect((await failures.peek(ADDRESS)).remaining).to.equal(1)
        await other.count(ADDRESS)
        expect((await failures.peek(ADDRESS)).remaining).to.equal(0)
      })
    }

    if (outage) {
      it('are counted by this replica while the store is down: never unlimited, never an error', async () => {
        await failures.count(ADDRESS)
        await outage.begin()
        try {
          const counted = await Promise.all(Array.from({ length: 50 }, () => failures.count(ADDRESS)))
          expect(counted.filter(({ admitted }) => admitted).length).to.be.within(1, PER_MINUTE)
          for (const quota of [...counted.map((count) => count.quota), await failures.peek(ADDRESS)]) {
            expect(quota.limit).to.be.within(1, PER_MINUTE)
            expect(quota.remaining).to.be.within(0, quota.limit)
            expect(quota.resetSeconds * 1000).to.be.within(quota.nowMs + 1, quota.nowMs + 60_000)
          }
        } finally {
          await outage.end()
        }
        expect((await failures.count(ADDRESS)).quota.remaining).to.be.at.most(PER_MINUTE - 2)
      })
    }
  })
}
