import { expect } from 'chai'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { ApiKeyLookup } from '../../src/core/ports/api-key-lookup.js'
import type { ApiKeyStore } from '../../src/core/ports/api-key-store.js'
import type { Clock } from '../../src/core/ports/clock.js'
import { MovableClock } from '../support/movable-clock.js'
import { anApiKey, aSecretHash } from '../support/builders.js'
import { rejection } from './rejection.js'
import { WatchedApiKeyStore } from '../support/watched-api-key-store.js'

const KEY = anApiKey()
const { secretHash } = KEY
const ABSENT = aSecretHash('nobody')

/** The longest that the port lets anything be remembered. */
const REMEMBERED_MS = 10_000

export function describeApiKeyLookup(name: string, make: (store: ApiKeyStore, clock: Clock) => ApiKeyLookup): void {
  describe(`the API key look-up ${name}`, () => {
    let clock: MovableClock
    let store: WatchedApiKeyStore
    let lookup: ApiKeyLookup

    beforeEach(async () => {
      clock = new MovableClock()
      store = new WatchedApiKeyStore()
      await store.insert(KEY)
      lookup = make(store, clock)
    })

    it('finds a key that the store has, and undefined for one that it has not', async () => {
      expect(await lookup.find(secretHash)).to.deep.equal(KEY)
      expect(await lookup.find(ABSENT)).to.equal(undefined)
      expect(store.queries).to.deep.equal([secretHash, ABSENT])
    })

    it('finds revoked and expired keys as they are', async () => {
      const expired = anApiKey('expired', { expiresAtMs: 1 })
      await store.insert(expired)
      await store.revoke(KEY.keyId, 1)
      expect(await lookup.find(expired.secretHash)).to.deep.equal(expired)
      expect(await lookup.find(secretHash)).to.deep.equal({ ...KEY, revokedAtMs: 1, version: 2 })
    })

    it('recalls a key only after it was found, and never asks the store for it', async () => {
      expect(lookup.recall(secretHash)).to.equal(undefined)
      expect(store.queries).to.deep.equal([])
      await lookup.find(secretHash)
      expect(lookup.recall(secretHash)).to.deep.equal(KEY)
      expect(lookup.recall(aSecretHash('two'))).to.equal(undefined)
      expect(store.queries).to.deep.equal([secretHash])
    })

    it('recalls nothing while the first query is under way', async () => {
      const gate = aGate()
      store.answering = gate.pass
      const found = lookup.find(secretHash)
      expect(lookup.recall(secretHash)).to.equal(undefined)
      gate.open()
      await found
      expect(lookup.recall(secretHash)).to.deep.equal(KEY)
    })

    it('recalls undefined for a key that was looked up and is not there', async () => {
      await lookup.find(ABSENT)
      expect(lookup.recall(ABSENT)).to.equal(undefined)
    })

    it('asks the store once for a key, and once for an absent one, that is looked up again and again', async () => {
      for (let count = 0; count < 20; count++) {
        expect(await lookup.find(secretHash)).to.deep.equal(KEY)
        expect(await lookup.find(ABSENT)).to.equal(undefined)
        clock.advanceMs(100)
      }
      expect(store.queries).to.deep.equal([secretHash, ABSENT])
    })

    it('asks the store once for 50 look-ups of a key, and for 50 of an absent one, that come while the query is under way', async () => {
      const gate = aGate()
      store.answering = gate.pass
      const found = Array.from({ length: 50 }, () => lookup.find(secretHash))
      const absent = Array.from({ length: 50 }, () => lookup.find(ABSENT))
      gate.open()
      expect(await Promise.all(found)).to.deep.equal(Array.from({ length: 50 }, () => KEY))
      expect(await Promise.all(absent)).to.deep.equal(Array.from({ length: 50 }, () => undefined))
      expect(store.queries).to.deep.equal([secretHash, ABSENT])
    })

    it('gives each of 200 look-ups of different keys that come at the same time its own key', async () => {
      const keys = Array.from({ length: 200 }, (_, index) => anApiKey(`k${index}`))
      for (const key of keys) await store.insert(key)
      expect(await Promise.all(keys.map((key) => lookup.find(key.secretHash)))).to.deep.equal(keys)
      expect(keys.map((key) => lookup.recall(key.secretHash))).to.deep.equal(keys)
    })

    it('shows a revocation on every replica 10 s later at the latest', async () => {
      const replicas = [lookup, make(store, clock)]
      for (const replica of replicas) await replica.find(secretHash)
      await store.revoke(KEY.keyId, 1)
      clock.advanceMs(REMEMBERED_MS)
      for (const replica of replicas) {
        expect(replica.recall(secretHash)).to.equal(undefined)
        expect(await replica.find(secretHash)).to.have.property('revokedAtMs', 1)
        expect(replica.recall(secretHash)).to.have.property('revokedAtMs', 1)
      }
    })

    it('shows a new key 10 s after a look-up in vain at the latest', async () => {
      await lookup.find(ABSENT)
      await store.insert(anApiKey('nobody'))
      clock.advanceMs(REMEMBERED_MS)
      expect(await lookup.find(ABSENT)).to.deep.equal(anApiKey('nobody'))
    })

    it('remembers a key no longer for being used all the time', async () => {
      await lookup.find(secretHash)
      await store.revoke(KEY.keyId, 1)
      for (let passedMs = 0; passedMs < REMEMBERED_MS; passedMs += 100) {
        await lookup.find(secretHash)
        lookup.recall(secretHash)
        clock.advanceMs(100)
      }
      expect(lookup.recall(secretHash)?.revokedAtMs).to.be.oneOf([undefined, 1])
      expect(await lookup.find(secretHash)).to.have.property('revokedAtMs', 1)
    })

    it('counts the 10 s from before the query, when that took 2 s', async () => {
      const gate = aGate()
      store.answering = gate.pass
      const found = lookup.find(secretHash)
      clock.advanceMs(2000)
      gate.open()
      expect(await found).to.deep.equal(KEY)
      expect(lookup.recall(secretHash)).to.deep.equal(KEY)
      clock.advanceMs(REMEMBERED_MS - 2000 + 1)
      expect(lookup.recall(secretHash)).to.equal(undefined)
    })

    it('recalls nothing old while what it remembered too long is looked up again', async () => {
      await lookup.find(secretHash)
      clock.advanceMs(REMEMBERED_MS)
      const gate = aGate()
      store.answering = gate.pass
      const found = lookup.find(secretHash)
      expect(lookup.recall(secretHash)).to.equal(undefined)
      gate.open()
      await found
    })

    it('asks the store once for 50 look-ups of a key that was remembered until just now', async () => {
      await lookup.find(secretHash)
      clock.advanceMs(REMEMBERED_MS)
      await Promise.all(Array.from({ length: 50 }, () => lookup.find(secretHash)))
      expect(store.queries).to.have.lengthOf(2)
    })

    it('gives a failure of the store to all who wait for it, and does not remember it', async () => {
      store.answering = fail
      const failures = await Promise.all(Array.from({ length: 20 }, () => rejection(lookup.find(secretHash))))
      for (const failure of failures) expect(failure).to.be.instanceOf(StoreUnavailable)
      expect(store.queries).to.have.lengthOf(1)
      expect(lookup.recall(secretHash)).to.equal(undefined)
      store.answering = async () => {}
      expect(await lookup.find(secretHash)).to.deep.equal(KEY)
    })

    it('does not take an absent key for found, nor a found one for absent, after a failure of the store', async () => {
      await lookup.find(secretHash)
      await lookup.find(ABSENT)
      clock.advanceMs(REMEMBERED_MS)
      store.answering = fail
      for (const hash of [secretHash, ABSENT]) {
        expect(await rejection(lookup.find(hash))).to.be.instanceOf(StoreUnavailable)
        expect(lookup.recall(hash)).to.equal(undefined)
      }
    })

    it('goes on answering from memory while the store is away', async () => {
      await lookup.find(secretHash)
      await lookup.find(ABSENT)
      store.answering = fail
      expect(lookup.recall(secretHash)).to.deep.equal(KEY)
      expect(await lookup.find(secretHash)).to.deep.equal(KEY)
      expect(await lookup.find(ABSENT)).to.equal(undefined)
    })

    it('has found a key from the moment on at which it was found, for longer than it remembers what it found, and no other key', async () => {
      expect(lookup.hasFound(secretHash)).to.equal(false)
      await lookup.find(secretHash)
      await lookup.find(ABSENT)
      for (const seconds of [0, 10, 3600]) {
        clock.advanceSeconds(seconds)
        expect(lookup.hasFound(secretHash)).to.equal(true)
        expect(lookup.hasFound(ABSENT)).to.equal(false)
        expect(lookup.hasFound(aSecretHash('two'))).to.equal(false)
      }
      expect(store.queries).to.deep.equal([secretHash, ABSENT])
    })

    it('has not found a key while the query is under way, nor after it failed', async () => {
      const gate = aGate()
      store.answering = async () => {
        await gate.pass()
        await fail()
      }
      const failure = rejection(lookup.find(secretHash))
      expect(lookup.hasFound(secretHash)).to.equal(false)
      gate.open()
      await failure
      expect(lookup.hasFound(secretHash)).to.equal(false)
    })

    it('remembers a bounded number of secrets: of 30,000, the latest and not the first', async () => {
      const hashes = Array.from({ length: 30_000 }, (_, index) => aSecretHash(`k${index}`))
      await Promise.all(hashes.map((hash, index) => store.insert(anApiKey(`k${index}`, { secretHash: hash }))))
      for (const hash of hashes) await lookup.find(hash)
      const [first, last] = [hashes[0] as string, hashes.at(-1) as string]
      expect(lookup.recall(last)).to.deep.equal(anApiKey('k29999', { secretHash: last }))
      expect(lookup.hasFound(last)).to.equal(true)
      expect(lookup.recall(first)).to.equal(undefined)
      expect(lookup.hasFound(first)).to.equal(false)
    })

    it('answers every look-up, also when more come at the same time than it remembers', async () => {
      const gate = aGate()
      store.answering = gate.pass
      const answers = Promise.allSettled(Array.from({ length: 30_000 }, (_, index) => lookup.find(aSecretHash(`k${index}`))))
      gate.open()
      expect((await answers).filter(({ status }) => status === 'rejected').length).to.equal(0)
    })
  })
}

async function fail(): Promise<void> {
  throw new StoreUnavailable('The store is away')
}

/** Lets nobody pass until it is opened. */
function aGate(): { pass: () => Promise<void>; open: () => void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { pass: () => opened, open: () => open() }
}
