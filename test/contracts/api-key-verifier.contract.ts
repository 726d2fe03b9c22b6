import { expect } from 'chai'
import { MemoryFailedAuthentications } from '../../src/adapters/memory/memory-failed-authentications.js'
import { CryptoApiKeySecrets } from '../../src/adapters/node/crypto-api-key-secrets.js'
import type { ApiKey } from '../../src/core/api-key.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { ApiKeySecrets } from '../../src/core/ports/api-key-secrets.js'
import type { ApiKeyStore } from '../../src/core/ports/api-key-store.js'
import type { ApiKeyVerifier, Verification } from '../../src/core/ports/api-key-verifier.js'
import type { Clock } from '../../src/core/ports/clock.js'
import type { FailedAuthentications } from '../../src/core/ports/failed-authentications.js'
import { heapUsedAfterCollection } from '../support/heap.js'
import { MovableClock } from '../support/movable-clock.js'
import { inSequence, inParallel } from '../support/verdicts.js'
import { WatchedApiKeyStore } from '../support/watched-api-key-store.js'
import { aChange, anApiKey, anIssue, anOldSecret } from '../support/builders.js'
import { rejection } from './rejection.js'

const ADDRESS = '192.0.2.1'
const OTHER_ADDRESS = '192.0.2.2'
const PER_MINUTE = 5
/** How long a record may be cached, by the port. */
const CACHED_MS = 10_000
/** How many lookups per IP address may be in flight. */
const IN_FLIGHT = 4
const OUTAGE = new StoreUnavailable('The store is down')

interface Ports {
  readonly secrets: ApiKeySecrets
  readonly apiKeyStore: ApiKeyStore
  readonly failedAuthentications: FailedAuthentications
  readonly clock: Clock
}

export function describeApiKeyVerifier(name: string, make: (ports: Ports) => ApiKeyVerifier): void {
  describe(`the API key verifier ${name}`, () => {
    const secrets = new CryptoApiKeySecrets()
    let clock: MovableClock
    let store: WatchedApiKeyStore
    let failures: MemoryFailedAuthentications
    let makeVerifier: () => ApiKeyVerifier
    let verifier: ApiKeyVerifier

    beforeEach(() => {
      clock = new MovableClock()
      store = new WatchedApiKeyStore()
      failures = new MemoryFailedAuthentications(PER_MINUTE, clock)
      makeVerifier = () => make({ secrets, apiKeyStore: store, failedAuthentications: failures, clock })
      verifier = makeVerifier()
    })

    const verify = (secret: string, address = ADDRESS) => verifier.verify(secret, address)
    const getKind = async (verification: Promise<Verification>) => (await verification).kind
    const failuresLeft = async () => (await failures.peek(ADDRESS)).remaining
    const minuteEndSeconds = () => Math.floor(clock.nowMs() / 60_000) * 60 + 60
    const quota = (remaining: number) => ({ nowMs: clock.nowMs(), limit: PER_MINUTE, remaining, resetSeconds: minuteEndSeconds() })
    /** Well-formed, but no key has it. */
    const aSecret = () => secrets.generate().secret

    async function aKey(overrides: Partial<ApiKey> = {}): Promise<{ secret: string; key: ApiKey }> {
      const { secret, ...publicPart } = secrets.generate()
      const key = anApiKey('one', { ...publicPart, ...overrides })
      await store.insert(key, anIssue())
      return { secret, key }
    }

    async function revoke(key: ApiKey): Promise<void> {
      await store.update({ ...key, revokedAtMs: 1, version: key.version + 1 }, aChange())
    }

    async function useUp(): Promise<void> {
      await inSequence(PER_MINUTE, () => failures.count(ADDRESS))
    }

    it('verifies a stored key and counts no failure, however often', async () => {
      const { secret, key } = await aKey()
      for (const verification of await inSequence(20, () => verify(secret))) expect(verification).to.deep.equal({ kind: 'verified', key })
      expect(await failuresLeft()).to.equal(PER_MINUTE)
    })

    for (const [what, makeSecret] of Object.entries<() => Promise<string>>({
      'a malformed key': async () => 'pst_live_nonsense',
      'a mistyped key': async () => mistyped(aSecret()),
      'an unknown key': async () => aSecret(),
      'an expired key': async () => (await aKey({ expiresAtMs: clock.nowMs() })).secret,
      'a revoked key': async () => (await aKey({ revokedAtMs: 1 })).secret,
    })) {
      it(`counts a failure for ${what}, and locks the IP address out after ${PER_MINUTE} until the minute ends`, async () => {
        const secret = await makeSecret()
        const verifications = await inSequence(PER_MINUTE + 2, () => verify(secret))
        const expected = [4, 3, 2, 1, 0].map((remaining) => ({ kind: 'invalid', quota: quota(remaining) }))
        expect(verifications).to.deep.equal([...expected, { kind: 'locked-out', quota: quota(0) }, { kind: 'locked-out', quota: quota(0) }])
        clock.advanceMs(29_999)
        expect(await getKind(verify(secret))).to.equal('locked-out')
        clock.advanceMs(1)
        expect(await getKind(verify(secret))).to.equal('invalid')
      })
    }

    it('looks up no malformed key', async () => {
      const secret = aSecret()
      for (const malformed of ['', 'secret', 'x'.repeat(secret.length), secret.slice(1), mistyped(secret)]) await verify(malformed)
      expect(store.queries).to.deep.equal([])
    })

    it('rejects a key from the millisecond at which it expires, even if its record is cached', async () => {
      const { secret } = await aKey({ expiresAtMs: clock.nowMs() + 5_000 })
      clock.advanceMs(4_999)
      expect(await getKind(verify(secret))).to.equal('verified')
      clock.advanceMs(1)
      expect(await getKind(verify(secret))).to.equal('invalid')
    })

    describe('caches records:', () => {
      it('a key that is sent repeatedly costs one query, whether it exists or not', async () => {
        const [{ secret }, absent] = [await aKey(), aSecret()]
        await inSequence(4, async () => {
          await Promise.all([verify(secret), verify(absent)])
          clock.advanceMs(100)
        })
        expect(store.queries)
          .to.have.members([secrets.hash(secret), secrets.hash(absent)])
          .and.have.lengthOf(2)
      })

      it('50 concurrent lookups of a key from many IP addresses cost one query, even if its record has just expired', async () => {
        const { secret, key } = await aKey()
        for (const queries of [1, 2]) {
          const release = store.hold()
          const verifications = inParallel(50, (index) => verify(secret, `198.51.100.${index}`))
          release()
          for (const verification of await verifications) expect(verification).to.deep.equal({ kind: 'verified', key })
          expect(store.queries).to.have.lengthOf(queries)
          clock.advanceMs(CACHED_MS)
        }
      })

      it('each of 200 concurrent keys gets its own record', async () => {
        const issued = await inParallel(200, (index) => aKey({ keyId: `key_${index}` }))
        const verifications = await inParallel(200, (index) => verify(issued[index]?.secret ?? ''))
        expect(verifications).to.deep.equal(issued.map(({ key }) => ({ kind: 'verified', key })))
      })

      it('a revocation applies on every replica within 10 s, even if the key is in constant use', async () => {
        const { secret, key } = await aKey()
        const replicas = [verifier, makeVerifier()]
        for (const replica of replicas) await replica.verify(secret, ADDRESS)
        await revoke(key)
        for (let passedMs = 0; passedMs < CACHED_MS; passedMs += 100) {
          for (const replica of replicas) await replica.verify(secret, OTHER_ADDRESS)
          clock.advanceMs(100)
        }
        for (const replica of replicas) expect(await getKind(replica.verify(secret, ADDRESS))).to.equal('invalid')
      })

      for (const [what, stepMs] of [
        ['back by an hour', -3_600_000],
        ['forward by an hour', 3_600_000],
      ] as const) {
        it(`a record is cached neither longer nor shorter if the Unix time steps ${what}`, async () => {
          const { secret } = await aKey()
          await verify(secret)
          clock.step(stepMs)
          await verify(secret)
          expect(store.queries).to.have.lengthOf(1)
          clock.advanceMs(CACHED_MS)
          await verify(secret)
          expect(store.queries).to.have.lengthOf(2)
        })
      }

      it('a key that is stored after a failed lookup is verified within 10 s', async () => {
        const { secret, ...publicPart } = secrets.generate()
        await verify(secret)
        await store.insert(anApiKey('one', publicPart), anIssue())
        clock.advanceMs(CACHED_MS)
        expect(await getKind(verify(secret))).to.equal('verified')
      })

      it('the 10 s include the time of the query', async () => {
        const { secret } = await aKey()
        const release = store.hold()
        const verification = verify(secret)
        clock.advanceMs(2_000)
        release()
        await verification
        clock.advanceMs(CACHED_MS - 2_000 + 1)
        await verify(secret)
        expect(store.queries).to.have.lengthOf(2)
      })

      it('cached keys stay verified while the store is down, and absent ones stay invalid', async () => {
        const [{ secret }, absent] = [await aKey(), aSecret()]
        await Promise.all([verify(secret), verify(absent)])
        store.failWith(OUTAGE)
        expect([await getKind(verify(secret)), await getKind(verify(absent))]).to.deep.equal(['verified', 'invalid'])
      })

      it('an outage is an error, is not cached, and does not count as a failure, even for a record that has expired', async () => {
        const { secret } = await aKey()
        for (const passedMs of [0, CACHED_MS]) {
          clock.advanceMs(passedMs)
          store.failWith(OUTAGE)
          expect(await rejection(verify(secret))).to.equal(OUTAGE)
          store.failWith()
          expect(await getKind(verify(secret))).to.equal('verified')
        }
        expect(await failuresLeft()).to.equal(PER_MINUTE)
      })

      it('an old secret is verified with its end until the end of its grace period, to the millisecond, even if its record is cached', async () => {
        const { secret: oldSecret, secretHash } = secrets.generate()
        const { secret, key } = await aKey({ oldSecret: anOldSecret({ hash: secretHash, expiresAtMs: clock.nowMs() + 2_000 }) })
        const verified = { kind: 'verified', key, secretExpiresAtMs: clock.nowMs() + 2_000 }
        expect(await verify(oldSecret)).to.deep.equal(verified)
        expect(await verify(secret))
          .to.include({ kind: 'verified' })
          .and.not.have.property('secretExpiresAtMs')
        clock.advanceMs(1_999)
        expect(await verify(oldSecret)).to.deep.equal(verified)
        clock.advanceMs(1)
        expect(await getKind(verify(oldSecret))).to.equal('invalid')
        expect(await verify(secret))
          .to.include({ kind: 'verified' })
          .and.not.have.property('secretExpiresAtMs')
        expect(store.queries).to.have.lengthOf(2)
      })

      it('forgetting an old secret drops its record, not that of the current secret', async () => {
        const { secret: oldSecret, secretHash } = secrets.generate()
        const { secret, key } = await aKey({ oldSecret: anOldSecret({ hash: secretHash }) })
        for (const one of [oldSecret, secret]) await verify(one)
        await store.update(anApiKey('one', { ...key, oldSecret: anOldSecret(), version: 2 }), aChange())
        verifier.forget(oldSecret)
        expect(await getKind(verify(oldSecret))).to.equal('invalid')
        expect(await verify(secret))
          .to.include({ kind: 'verified' })
          .and.not.have.property('secretExpiresAtMs')
      })

      it('a forgotten record is read again, and its key still counts as found before', async () => {
        const { secret, key } = await aKey()
        await verify(secret)
        await revoke(key)
        verifier.forget(secret)
        expect(await getKind(verify(secret))).to.equal('invalid')
        await useUp()
        verifier.forget(secret)
        await verify(secret)
        expect(store.queries).to.have.lengthOf(3)
      })

      it('the number of records is bounded: of 12,000 keys, the last is cached and the first is new again', async () => {
        const issued = await inParallel(12_000, (index) => aKey({ keyId: `key_${index}` }))
        const [first, last] = [issued[0], issued.at(-1)]
        for (const { secret } of issued) await verify(secret)
        await useUp()
        expect(await getKind(verify(last?.secret ?? ''))).to.equal('verified')
        expect(await getKind(verify(first?.secret ?? ''))).to.equal('locked-out')
        expect(store.queries).to.have.lengthOf(12_000)
      })

      it('every one of 12,000 concurrent lookups gets a result, although fewer records are kept', async () => {
        const release = store.hold()
        const verifications = inParallel(12_000, (index) => getKind(verify(aSecret(), `address ${index}`)))
        release()
        expect(new Set(await verifications)).to.deep.equal(new Set(['invalid']))
      })
    })

    describe('limits guessing:', () => {
      it(`${IN_FLIGHT} lookups per IP address are in flight, which delays neither other IP addresses nor cached keys`, async () => {
        const [known, other] = [await aKey({ keyId: 'key_known' }), await aKey({ keyId: 'key_other' })]
        await verify(known.secret)
        const release = store.hold()
        const guesses = inParallel(20, () => getKind(verify(aSecret())))
        await microtasks()
        expect(store.queries).to.have.lengthOf(1 + IN_FLIGHT)
        store.failWith()
        expect(await getKind(verify(other.secret, OTHER_ADDRESS))).to.equal('verified')
        expect(await getKind(verify(known.secret))).to.equal('verified')
        release()
        await guesses
      })

      it(`slow lookups of an IP address neither raise its limit of ${IN_FLIGHT} nor prolong an outage`, async () => {
        const { secret } = await aKey()
        const releaseSlow = store.hold()
        const slow = inParallel(IN_FLIGHT - 1, () => verify(aSecret()))
        await microtasks()
        store.failWith(OUTAGE)
        expect(await rejection(verify(secret))).to.equal(OUTAGE)
        store.failWith()
        expect(await getKind(verify(secret))).to.equal('verified')
        const release = store.hold()
        const later = inParallel(2, () => verify(aSecret()))
        await microtasks()
        expect(store.queries).to.have.lengthOf(IN_FLIGHT - 1 + 2 + 1)
        releaseSlow()
        release()
        await Promise.all([slow, later])
      })

      it('of 100 keys guessed at once, exactly as many are invalid as the limit allows, and at most 3 more are looked up', async () => {
        const kinds = await inParallel(100, () => getKind(verify(aSecret())))
        expect(kinds.filter((kind) => kind === 'invalid')).to.have.lengthOf(PER_MINUTE)
        expect(kinds.filter((kind) => kind === 'locked-out')).to.have.lengthOf(100 - PER_MINUTE)
        expect(store.queries.length).to.be.within(PER_MINUTE, PER_MINUTE + IN_FLIGHT - 1)
      })

      it('1,000 concurrent new keys of one IP address are all verified, and each reads the quota of the address once', async () => {
        let peeks = 0
        const peek = failures.peek.bind(failures)
        failures.peek = (address) => {
          peeks += 1
          return peek(address)
        }
        const issued = await inParallel(1_000, (index) => aKey({ keyId: `key_${index}` }))
        const kinds = await inParallel(1_000, (index) => getKind(verify(issued[index]?.secret ?? '')))
        expect(new Set(kinds)).to.deep.equal(new Set(['verified']))
        expect(peeks).to.equal(1_000)
      })

      it('an IP address that has reached its limit causes no lookup of a new key, valid or not, until the minute ends', async () => {
        const [{ secret }, absent] = [await aKey(), aSecret()]
        await verify(absent)
        await useUp()
        clock.advanceMs(CACHED_MS)
        for (const sent of [secret, absent, aSecret(), 'malformed'])
          expect(await verify(sent)).to.deep.equal({ kind: 'locked-out', quota: quota(0) })
        expect(store.queries).to.have.lengthOf(1)
        expect(await getKind(verify(secret, OTHER_ADDRESS))).to.equal('verified')
        clock.advanceSeconds(60)
        expect(await getKind(verify((await aKey({ keyId: 'key_two' })).secret))).to.equal('verified')
      })

      it('a key that waits is locked out without a lookup if its IP address reaches the limit in the meantime', async () => {
        const { secret } = await aKey()
        const release = store.hold()
        const guesses = inParallel(IN_FLIGHT, () => verify(aSecret()))
        const waiting = verify(secret)
        await microtasks()
        await useUp()
        release()
        expect((await waiting).kind).to.equal('locked-out')
        expect(store.queries).to.have.lengthOf(IN_FLIGHT)
        await guesses
      })

      it('a key that this replica found before is verified even for such an IP address, and its record is still refreshed', async () => {
        const { secret, key } = await aKey()
        await verify(secret)
        await useUp()
        expect(await getKind(verify(secret))).to.equal('verified')
        expect(store.queries).to.have.lengthOf(1)
        clock.advanceMs(CACHED_MS)
        expect(await getKind(verify(secret))).to.equal('verified')
        expect(store.queries).to.have.lengthOf(2)
        await revoke(key)
        clock.advanceMs(CACHED_MS)
        expect(await getKind(verify(secret))).to.equal('locked-out')
      })

      it('an outage fails the lookups in flight and those that wait, without further queries, and is over when the store is back', async () => {
        const issued = await inParallel(50, (index) => aKey({ keyId: `key_${index}` }))
        const verifyAll = () => inParallel(50, (index) => getKind(verify(issued[index]?.secret ?? '')).catch((error: unknown) => error))
        store.failWith(OUTAGE)
        expect(new Set(await verifyAll())).to.deep.equal(new Set([OUTAGE]))
        expect(store.queries.length).to.be.at.most(IN_FLIGHT)
        store.failWith()
        expect(new Set(await verifyAll())).to.deep.equal(new Set(['verified']))
      })

      for (const [what, failOnce] of [
        ['lookup', () => (store.beforeResponse = () => (store.failWith(), Promise.reject(new TypeError('A bug'))))],
        ['quota', () => (failures.peek = () => (Reflect.deleteProperty(failures, 'peek'), Promise.reject(new TypeError('A bug'))))],
      ] as const) {
        it(`any other error of a ${what} fails only its own verification`, async () => {
          const issued = await inParallel(20, (index) => aKey({ keyId: `key_${index}` }))
          failOnce()
          const settled = await Promise.allSettled(issued.map(({ secret }) => verify(secret)))
          expect(settled.filter(({ status }) => status === 'rejected')).to.have.lengthOf(1)
        })
      }

      it('a lookup that waits does not start after its signal is aborted, and the lookups of other requests continue', async () => {
        const [first, last] = [await aKey({ keyId: 'key_first' }), await aKey({ keyId: 'key_last' })]
        const release = store.hold()
        const guesses = inParallel(IN_FLIGHT - 1, () => getKind(verify(aSecret())))
        const inFlight = getKind(verify(first.secret))
        const controller = new AbortController()
        const waiting = inParallel(3, () => rejection(verifier.verify(aSecret(), ADDRESS, controller.signal)))
        const other = getKind(verify(last.secret))
        await microtasks()
        const reason = new StoreUnavailable('Too late')
        controller.abort(reason)
        release()
        expect(await waiting).to.deep.equal([reason, reason, reason])
        expect([await inFlight, await other]).to.deep.equal(['verified', 'verified'])
        expect(store.queries).to.have.lengthOf(IN_FLIGHT + 1)
        await guesses
      })

      it('nothing is kept for an IP address without a lookup in flight', async () => {
        const { secret } = await aKey()
        const verifyFrom = (count: number) =>
          inSequence(count, (index) => {
            verifier.forget(secret)
            return verify(secret, `address ${index}`)
          })
        await verifyFrom(100)
        const beforeBytes = heapUsedAfterCollection()
        await verifyFrom(5_000)
        expect(heapUsedAfterCollection() - beforeBytes).to.be.below(2_000_000)
      })
    })
  })
}

/** Returns the secret with a different last character. */
function mistyped(secret: string): string {
  return secret.slice(0, -1) + (secret.endsWith('0') ? '1' : '0')
}

/** Runs everything that does not wait for I/O. */
function microtasks(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
