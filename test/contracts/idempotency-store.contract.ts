import { expect } from 'chai'
import { StoreUnavailable } from '../../src/core/errors.js'
import { MAX_ASSIGNED_ID } from '../../src/core/int64.js'
import type { IdempotencyRecord, IdempotencyScope, IdempotencyStore } from '../../src/core/ports/idempotency-store.js'
import { MovableClock } from '../support/movable-clock.js'
import type { Opened, Outage } from './opened.js'
import { rejection } from './rejection.js'

const DAY_MS = 24 * 60 * 60 * 1000

export function describeIdempotencyStore(
  name: string,
  open: (clock: MovableClock) => Promise<Opened<IdempotencyStore>>,
  outage?: Outage,
): void {
  describe(`the idempotency store ${name}`, () => {
    let clock: MovableClock
    let opened: Opened<IdempotencyStore>
    let idempotency: IdempotencyStore

    beforeEach(async () => {
      clock = aClock()
      opened = await open(clock)
      idempotency = opened.port
    })

    afterEach(() => opened.close())

    /** Claims with a new record at the same time, taking turns between two replicas, and says what each got. */
    async function claimAtOnce(count: number, firstId: bigint): Promise<IdempotencyRecord[]> {
      const replicas = [idempotency, await opened.reopen()] as const
      const offers = Array.from({ length: count }, (_, index) => aRecord({ petId: firstId + BigInt(index) }))
      const got = await Promise.all(offers.map((offered, index) => (replicas[index % 2] as IdempotencyStore).claim(aScope(), offered)))
      expect(offers).to.deep.include(got[0])
      return got
    }

    it('answers the first claim of a scope with the record offered', async () => {
      for (const [index, petId] of [1n, 2n ** 31n, MAX_ASSIGNED_ID].entries()) {
        const offered = aRecord({ petId, fingerprint: JSON.stringify(['Ré \u{1f436} "\\', '9223372036854775807', 'x'.repeat(2000)]) })
        expect(await idempotency.claim(aScope({ idempotencyKey: `k${index}` }), offered)).to.deep.equal(offered)
      }
    })

    it('answers every later claim with the first record, whatever it offers', async () => {
      const first = aRecord({ petId: 1n })
      await idempotency.claim(aScope(), first)
      expect(await idempotency.claim(aScope(), aRecord({ petId: 2n }))).to.deep.equal(first)
      expect(await idempotency.claim(aScope(), aRecord({ petId: 3n, fingerprint: 'of another pet' }))).to.deep.equal(first)
      expect(await idempotency.claim(aScope(), first)).to.deep.equal(first)
    })

    it('answers 50 claims of one scope that come at the same time on two replicas with one and the same record', async () => {
      const got = await claimAtOnce(50, 1n)
      for (const record of got) expect(record).to.deep.equal(got[0])
      expect(await idempotency.claim(aScope(), aRecord({ petId: 99n }))).to.deep.equal(got[0])
    })

    it('answers each of 100 scopes that are claimed eight times at once on four replicas with one record of those offered', async () => {
      const replicas = await Promise.all(Array.from({ length: 4 }, () => opened.reopen()))
      for (let scope = 0; scope < 100; scope++) {
        const idempotencyKey = `k${scope}`
        const offers = Array.from({ length: 8 }, (_, index) => aRecord({ petId: BigInt(10 * scope + index + 1) }))
        const claims = offers.map((offered, index) => (replicas[index % 4] as IdempotencyStore).claim(aScope({ idempotencyKey }), offered))
        const got = await Promise.all(claims)
        expect(offers).to.deep.include(got[0])
        for (const record of got) expect(record, `scope ${scope}`).to.deep.equal(got[0])
      }
    })

    it('shows another replica, or this one after a restart, the record as soon as it is claimed', async () => {
      await idempotency.claim(aScope(), aRecord({ petId: 1n }))
      const another = await opened.reopen()
      expect(await another.claim(aScope(), aRecord({ petId: 2n }))).to.deep.equal(aRecord({ petId: 1n }))
    })

    it('answers with the record for 24 h to the millisecond, then with a new one, which lasts 24 h in turn', async () => {
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

    it('puts a new record in the place of one that has ended whatever its fingerprint is', async () => {
      for (const fingerprint of ['$petId', '$$ROOT', '{"$add":[1,2]}', '']) {
        expect(await idempotency.claim(aScope(), aRecord({ fingerprint, petId: 2n }))).to.deep.equal({ fingerprint, petId: 2n })
        clock.advanceMs(DAY_MS)
      }
    })

    it('does not prolong a record when it is claimed again', async () => {
      await idempotency.claim(aScope(), aRecord({ petId: 1n }))
      for (let hour = 1; hour < 24; hour++) {
        clock.advanceMs(DAY_MS / 24)
        expect(await idempotency.claim(aScope(), aRecord({ petId: 2n }))).to.deep.equal(aRecord({ petId: 1n }))
      }
      clock.advanceMs(DAY_MS / 24)
      expect(await idempotency.claim(aScope(), aRecord({ petId: 3n }))).to.deep.equal(aRecord({ petId: 3n }))
    })

    it('answers 50 claims that come at the same time when the record has ended with one and the same new record', async () => {
      await idempotency.claim(aScope(), aRecord({ petId: 1n }))
      clock.advanceMs(DAY_MS)
      const got = await claimAtOnce(50, 2n)
      for (const record of got) expect(record).to.deep.equal(got[0])
      expect(await idempotency.claim(aScope(), aRecord({ petId: 99n }))).to.deep.equal(got[0])
    })

    it('loses no record among 300 that were claimed at different times', async () => {
      const scopeOf = (index: number) => aScope({ idempotencyKey: `k${index}` })
      for (let index = 0; index < 300; index++) {
        await idempotency.claim(scopeOf(index), aRecord({ petId: BigInt(index + 1) }))
        clock.advanceMs(60_000)
      }
      for (let index = 0; index < 300; index++) {
        expect(await idempotency.claim(scopeOf(index), aRecord({ petId: 9999n }))).to.deep.equal(aRecord({ petId: BigInt(index + 1) }))
      }
    })

    for (const [what, one, other] of [
      ['keys of one caller', { idempotencyKey: 'a' }, { idempotencyKey: 'b' }],
      ['callers with one key', { keyId: 'key_a' }, { keyId: 'key_b' }],
      ['a colon on one side or the other', { keyId: 'a', idempotencyKey: 'b:c' }, { keyId: 'a:b', idempotencyKey: 'c' }],
      ['a quote and a comma', { keyId: 'a', idempotencyKey: 'b","c' }, { keyId: 'a","b', idempotencyKey: 'c' }],
      ['a bar', { keyId: 'a', idempotencyKey: '|b' }, { keyId: 'a|', idempotencyKey: 'b' }],
      ['a letter on one side or the other', { keyId: 'ab', idempotencyKey: 'c' }, { keyId: 'a', idempotencyKey: 'bc' }],
      ['key id and key exchanged', { keyId: 'a', idempotencyKey: 'b' }, { keyId: 'b', idempotencyKey: 'a' }],
      ['letter case', { idempotencyKey: 'Retry' }, { idempotencyKey: 'retry' }],
      ['a space at the end', { idempotencyKey: 'a' }, { idempotencyKey: 'a ' }],
      ['the last of 255 characters', { idempotencyKey: `${'x'.repeat(254)}1` }, { idempotencyKey: `${'x'.repeat(254)}2` }],
      ['a name that objects have anyway', { idempotencyKey: 'constructor' }, { idempotencyKey: '__proto__' }],
      ['a dot and a dollar', { idempotencyKey: '$a.b' }, { idempotencyKey: '$a' }],
    ] satisfies [string, Partial<IdempotencyScope>, Partial<IdempotencyScope>][]) {
      it(`keeps scopes apart that differ by ${what}`, async () => {
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
  open: (clock: MovableClock) => Promise<Opened<IdempotencyStore>>,
  outage: Outage,
): void {
  describe(`the idempotency store ${name}, while it is away`, () => {
    let opened: Opened<IdempotencyStore>
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

    it('throws StoreUnavailable for a scope that is there and for one that is not', async () => {
      await outage.begin()
      const scopes = [aScope(), aScope({ idempotencyKey: 'another' })]
      const reasons = await Promise.all(scopes.map((scope) => rejection(idempotency.claim(scope, aRecord()))))
      for (const reason of reasons) expect(reason).to.be.instanceOf(StoreUnavailable)
    })

    it('loses no record, and the retry of a failed claim gets one record, which it keeps', async () => {
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

/** Begins now: what has ended by the clock of an engine may be removed, and this one is moved into the future only. */
function aClock(): MovableClock {
  return new MovableClock(Date.now())
}

function aScope(overrides: Partial<IdempotencyScope> = {}): IdempotencyScope {
  return { keyId: 'key_one', idempotencyKey: '8e03978e-40d5-43dd-bc93-6894a57f9324', ...overrides }
}

function aRecord(overrides: Partial<IdempotencyRecord> = {}): IdempotencyRecord {
  return { fingerprint: '["Rex","7","available"]', petId: 1n, ...overrides }
}
