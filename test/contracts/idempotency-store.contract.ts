import { expect } from 'chai'
import { StoreUnavailable } from '../../src/core/errors.js'
import { MAX_ASSIGNED_ID } from '../../src/core/int64.js'
import type { IdempotencyRecord, IdempotencyScope, IdempotencyStore } from '../../src/core/ports/idempotency-store.js'
import { MovableClock } from '../support/movable-clock.js'
import type { OpenAdapter, Outage } from './open-adapter.js'
import { rejection } from './rejection.js'

const DAY_MS = 24 * 60 * 60 * 1000

export function describeIdempotencyStore(
  name: string,
  open: (clock: MovableClock) => Promise<OpenAdapter<IdempotencyStore>>,
  outage?: Outage,
): void {
  describe(`the idempotency store ${name}`, () => {
    let clock: MovableClock
    let opened: OpenAdapter<IdempotencyStore>
    let idempotency: IdempotencyStore

    beforeEach(async () => {
      clock = aClock()
      opened = await open(clock)
      idempotency = opened.port
    })

    afterEach(() => opened.close())

    /** Claims new records concurrently on two replicas and returns the results. */
    async function claimConcurrently(count: number, firstId: bigint): Promise<IdempotencyRecord[]> {
      const replicas = [idempotency, await opened.reopen()] as const
      const offers = Array.from({ length: count }, (_, index) => aRecord({ petId: firstId + BigInt(index) }))
      const records = await Promise.all(offers.map((offered, index) => (replicas[index % 2] as IdempotencyStore).claim(aScope(), offered)))
      expect(offers).to.deep.include(records[0])
      return records
    }

    it('returns the offered record for the first claim of a scope', async () => {
      for (const [index, petId] of [1n, 2n ** 31n, MAX_ASSIGNED_ID].entries()) {
        const offered = aRecord({ petId, fingerprint: JSON.stringify(['Ré \u{1f436} "\\', '9223372036854775807', 'x'.repeat(2000)]) })
        expect(await idempotency.claim(aScope({ idempotencyKey: `k${index}` }), offered)).to.deep.equal(offered)
      }
    })

    it('returns the first record for every later claim', async () => {
      const first = aRecord({ petId: 1n })
      await idempotency.claim(aScope(), first)
      expect(await idempotency.claim(aScope(), aRecord({ petId: 2n }))).to.deep.equal(first)
      expect(await idempotency.claim(aScope(), aRecord({ petId: 3n, fingerprint: 'of another pet' }))).to.deep.equal(first)
      expect(await idempotency.claim(aScope(), first)).to.deep.equal(first)
    })

    it('returns one of the offered records for eight concurrent claims on four replicas, for each of 100 scopes', async () => {
      const replicas = await Promise.all(Array.from({ length: 4 }, () => opened.reopen()))
      for (let scope = 0; scope < 100; scope++) {
        const idempotencyKey = `k${scope}`
        const offers = Array.from({ length: 8 }, (_, index) => aRecord({ petId: BigInt(10 * scope + index + 1) }))
        const claims = offers.map((offered, index) => (replicas[index % 4] as IdempotencyStore).claim(aScope({ idempotencyKey }), offered))
        const records = await Promise.all(claims)
        expect(offers).to.deep.include(records[0])
        for (const record of records) expect(record, `scope ${scope}`).to.deep.equal(records[0])
      }
    })

    it('returns a claimed record immediately on another replica and after a restart', async () => {
      await idempotency.claim(aScope(), aRecord({ petId: 1n }))
      const another = await opened.reopen()
      expect(await another.claim(aScope(), aRecord({ petId: 2n }))).to.deep.equal(aRecord({ petId: 1n }))
    })

    it('keeps a record for exactly 24 h, and then accepts a new one for another 24 h', async () => {
      await idempotency.claim(aScope(), aRecord({ petId: 1n }))
      clock.advanceMs(DAY_MS - 1)
      expect(await idempotency.claim(aScope(), aRecord({ petId: 2n }))).to.deep.equal(aRecord({ petId: 1n }))
      clock.advanceMs(1)
      expect(await idempotency.claim(aScope(), aRecord({ petId: 3n }))).to.deep.equal(aRecord({ petId: 3n }))
      clock.advanceMs(DAY_MS - 1)
      expect(await idempotency.claim(aScope(), aRecord({ petId: 4n }))).to.deep.equal(aRecord({ petId: 3n }))
      clock.advanceMs(1)
      expect(await idempotency.claim(aScope(), aRecord({ petId: 5n }))).to.deep.equal(aRecord({ petId: 5n }))
    })

    it('replaces an expired record, whatever the new fingerprint is', async () => {
      for (const fingerprint of ['$petId', '$$ROOT', '{"$add":[1,2]}', '']) {
        expect(await idempotency.claim(aScope(), aRecord({ fingerprint, petId: 2n }))).to.deep.equal({ fingerprint, petId: 2n })
        clock.advanceMs(DAY_MS)
      }
    })

    it('returns the same new record for 50 concurrent claims after the record has expired', async () => {
      await idempotency.claim(aScope(), aRecord({ petId: 1n }))
      clock.advanceMs(DAY_MS)
      const records = await claimConcurrently(50, 2n)
      for (const record of records) expect(record).to.deep.equal(records[0])
      expect(await idempotency.claim(aScope(), aRecord({ petId: 99n }))).to.deep.equal(records[0])
    })

    for (const [what, one, other] of [
      ['keys of one caller', { idempotencyKey: 'a' }, { idempotencyKey: 'b' }],
      ['callers with one key', { keyId: 'key_a' }, { keyId: 'key_b' }],
      ['a colon on one side or the other', { keyId: 'a', idempotencyKey: 'b:c' }, { keyId: 'a:b', idempotencyKey: 'c' }],
      ['a quote and a comma', { keyId: 'a', idempotencyKey: 'b","c' }, { keyId: 'a","b', idempotencyKey: 'c' }],
      ['a bar', { keyId: 'a', idempotencyKey: '|b' }, { keyId: 'a|', idempotencyKey: 'b' }],
      ['a letter on one side or the other', { keyId: 'ab', idempotencyKey: 'c' }, { keyId: 'a', idempotencyKey: 'bc' }],
      ['key ID and idempotency key swapped', { keyId: 'a', idempotencyKey: 'b' }, { keyId: 'b', idempotencyKey: 'a' }],
      ['letter case', { idempotencyKey: 'Retry' }, { idempotencyKey: 'retry' }],
      ['a space at the end', { idempotencyKey: 'a' }, { idempotencyKey: 'a ' }],
      ['the last of 255 characters', { idempotencyKey: `${'x'.repeat(254)}1` }, { idempotencyKey: `${'x'.repeat(254)}2` }],
      ['names of built-in object properties', { idempotencyKey: 'constructor' }, { idempotencyKey: '__proto__' }],
      ['a dot and a dollar', { idempotencyKey: '$a.b' }, { idempotencyKey: '$a' }],
    ] satisfies [string, Partial<IdempotencyScope>, Partial<IdempotencyScope>][]) {
      it(`distinguishes scopes that differ by ${what}`, async () => {
        expect(await idempotency.claim(aScope(one), aRecord({ petId: 1n }))).to.deep.equal(aRecord({ petId: 1n }))
        expect(await idempotency.claim(aScope(other), aRecord({ petId: 2n }))).to.deep.equal(aRecord({ petId: 2n }))
        expect(await idempotency.claim(aScope(one), aRecord({ petId: 3n }))).to.deep.equal(aRecord({ petId: 1n }))
        expect(await idempotency.claim(aScope(other), aRecord({ petId: 3n }))).to.deep.equal(aRecord({ petId: 2n }))
      })
    }
  })
  if (outage) describeIdempotencyStoreOutages(name, open, outage)
}

export function describeIdempotencyStoreOutages(
  name: string,
  open: (clock: MovableClock) => Promise<OpenAdapter<IdempotencyStore>>,
  outage: Outage,
): void {
  describe(`the idempotency store ${name}, during an outage`, () => {
    let opened: OpenAdapter<IdempotencyStore>
    let idempotency: IdempotencyStore

    beforeEach(async () => {
      opened = await open(aClock())
      idempotency = opened.port
      await idempotency.claim(aScope(), aRecord({ petId: 1n }))
    })

    afterEach(async () => {
      await outage.end()
      await opened.close()
    })

    it('throws StoreUnavailable for an existing and for a new scope', async () => {
      await outage.begin()
      const scopes = [aScope(), aScope({ idempotencyKey: 'another' })]
      const reasons = await Promise.all(scopes.map((scope) => rejection(idempotency.claim(scope, aRecord()))))
      for (const reason of reasons) expect(reason).to.be.instanceOf(StoreUnavailable)
    })

    it('loses no record, and returns one record for all retries of a failed claim', async () => {
      await outage.begin()
      await rejection(idempotency.claim(aScope({ idempotencyKey: 'another' }), aRecord({ petId: 2n })))
      await outage.end()
      expect(await idempotency.claim(aScope(), aRecord({ petId: 3n }))).to.deep.equal(aRecord({ petId: 1n }))
      const retried = await idempotency.claim(aScope({ idempotencyKey: 'another' }), aRecord({ petId: 4n }))
      expect([aRecord({ petId: 2n }), aRecord({ petId: 4n })]).to.deep.include(retried)
      expect(await idempotency.claim(aScope({ idempotencyKey: 'another' }), aRecord({ petId: 5n }))).to.deep.equal(retried)
    })
  })
}

/** Starts now and moves forward only, because an engine removes records that have expired by its own clock. */
function aClock(): MovableClock {
  return new MovableClock(Date.now())
}

function aScope(overrides: Partial<IdempotencyScope> = {}): IdempotencyScope {
  return { keyId: 'key_one', idempotencyKey: '8e03978e-40d5-43dd-bc93-6894a57f9324', ...overrides }
}

function aRecord(overrides: Partial<IdempotencyRecord> = {}): IdempotencyRecord {
  return { fingerprint: '["Rex","7","available"]', petId: 1n, ...overrides }
}
