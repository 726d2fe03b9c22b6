import { expect } from 'chai'
import { CachedApiKeyLookup } from '../../src/adapters/memory/cached-api-key-lookup.js'
import { MemoryFailedAuthentications } from '../../src/adapters/memory/memory-failed-authentications.js'
import { CryptoApiKeySecrets } from '../../src/adapters/node/crypto-api-key-secrets.js'
import type { ApiKey } from '../../src/core/api-key.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { Authentication } from '../../src/core/use-cases/authenticate.js'
import { makeAuthenticate } from '../../src/core/use-cases/authenticate.js'
import { anApiKey } from '../support/builders.js'
import { rejection } from '../contracts/rejection.js'
import { WatchedApiKeyStore } from '../support/watched-api-key-store.js'
import { MovableClock } from '../support/movable-clock.js'

const PER_MINUTE = 5
const ADDRESS = '192.0.2.1'
/** Longer than a key is remembered. */
const FORGOTTEN_SECONDS = 10

describe('authenticating', () => {
  it('verifies the caller of a key that the store has', async () => {
    const { authenticate, aKey } = aGate()
    const { secret, key } = await aKey()
    expect(await authenticate({ secret, address: ADDRESS })).to.deep.equal({ kind: 'verified', key })
  })

  it('charges a verified caller’s address nothing', async () => {
    const { authenticate, aKey, failuresLeft } = aGate()
    const { secret } = await aKey()
    for (let count = 0; count < 3 * PER_MINUTE; count++) await authenticate({ secret, address: ADDRESS })
    expect(await failuresLeft()).to.equal(PER_MINUTE)
  })

  it('rejects a malformed, unknown, expired or revoked key in the same way, and charges the IP address one failure', async () => {
    for (const makeSecret of Object.values(invalidKeys())) {
      const gate = aGate()
      const secret = await makeSecret(gate)
      const quota = { nowMs: gate.clock.nowMs(), limit: PER_MINUTE, remaining: PER_MINUTE - 1, resetSeconds: minuteEndSeconds(gate.clock) }
      expect(await gate.authenticate({ secret, address: ADDRESS })).to.deep.equal({ kind: 'invalid', quota })
      expect(await gate.failuresLeft()).to.equal(PER_MINUTE - 1)
    }
  })

  it('counts no failure for missing keys, and reports the remaining failures of the IP address', async () => {
    const { authenticate, failedAuthentications, clock } = aGate()
    await failedAuthentications.count(ADDRESS)
    const quota = { nowMs: clock.nowMs(), limit: PER_MINUTE, remaining: PER_MINUTE - 1, resetSeconds: minuteEndSeconds(clock) }
    for (let count = 0; count < 3 * PER_MINUTE; count++)
      expect(await authenticate({ address: ADDRESS })).to.deep.equal({ kind: 'missing', quota })
  })

  it('reports a missing key as missing, with 0 remaining, from an IP address that has reached its limit', async () => {
    const { authenticate, useUp, clock } = aGate()
    await useUp(ADDRESS)
    const quota = { nowMs: clock.nowMs(), limit: PER_MINUTE, remaining: 0, resetSeconds: minuteEndSeconds(clock) }
    expect(await authenticate({ address: ADDRESS })).to.deep.equal({ kind: 'missing', quota })
  })

  for (const [what, makeSecret] of Object.entries(invalidKeys())) {
    it(`locks the address out after ${PER_MINUTE} failures with ${what}, until the next minute`, async () => {
      const gate = aGate()
      const secret = await makeSecret(gate)
      const kinds: Authentication['kind'][] = []
      for (let count = 0; count < PER_MINUTE + 2; count++) kinds.push((await gate.authenticate({ secret, address: ADDRESS })).kind)
      expect(kinds).to.deep.equal([...Array.from({ length: PER_MINUTE }, () => 'invalid'), 'locked-out', 'locked-out'])
      gate.clock.advanceSeconds(60)
      expect((await gate.authenticate({ secret, address: ADDRESS })).kind).to.equal('invalid')
    })
  }

  it('looks up no key that is absent or has a wrong shape or checksum', async () => {
    const { authenticate, aSecret, store } = aGate()
    const { length } = aSecret()
    for (const secret of [undefined, '', 'secret', 'x'.repeat(length), aSecret().slice(1), mistyped(aSecret())])
      await authenticate(asked(secret))
    expect(store.queries).to.deep.equal([])
  })

  it('looks up no key from an IP address that has reached its limit, valid or not', async () => {
    const { authenticate, aKey, aSecret, store, useUp, clock } = aGate()
    const { secret } = await aKey()
    await useUp(ADDRESS)
    const quota = { nowMs: clock.nowMs(), limit: PER_MINUTE, remaining: 0, resetSeconds: minuteEndSeconds(clock) }
    for (const sent of [secret, aSecret(), 'malformed']) {
      expect(await authenticate({ secret: sent, address: ADDRESS })).to.deep.equal({ kind: 'locked-out', quota })
    }
    expect(store.queries).to.deep.equal([])
  })

  it('serves a key that this replica knows behind an address that somebody else has used up, with no look-up', async () => {
    const { authenticate, aKey, store, useUp } = aGate()
    const { secret, key } = await aKey()
    await authenticate({ secret, address: ADDRESS })
    await useUp(ADDRESS)
    expect(await authenticate({ secret, address: ADDRESS })).to.deep.equal({ kind: 'verified', key })
    expect(store.queries).to.have.lengthOf(1)
  })

  it('goes on serving it there when its record has to be looked up again', async () => {
    const { authenticate, aKey, store, useUp, clock } = aGate()
    const { secret, key } = await aKey()
    await authenticate({ secret, address: ADDRESS })
    clock.advanceSeconds(FORGOTTEN_SECONDS)
    await useUp(ADDRESS)
    expect(await authenticate({ secret, address: ADDRESS })).to.deep.equal({ kind: 'verified', key })
    expect(store.queries).to.have.lengthOf(2)
  })

  it('serves a key that it did not know behind a used-up address in the next minute', async () => {
    const { authenticate, aKey, useUp, clock } = aGate()
    const { secret } = await aKey()
    await useUp(ADDRESS)
    clock.advanceSeconds(60)
    expect((await authenticate({ secret, address: ADDRESS })).kind).to.equal('verified')
  })

  it('serves other addresses while one is locked out', async () => {
    const { authenticate, aKey, useUp } = aGate()
    const { secret } = await aKey()
    await useUp(ADDRESS)
    expect((await authenticate({ secret, address: '192.0.2.2' })).kind).to.equal('verified')
  })

  it('refuses a key from the instant on at which it expires, remembered or not', async () => {
    const { authenticate, aKey, clock } = aGate()
    const { secret } = await aKey({ expiresAtMs: clock.nowMs() + 5000 })
    clock.advanceMs(4999)
    expect((await authenticate({ secret, address: ADDRESS })).kind).to.equal('verified')
    clock.advanceMs(1)
    expect((await authenticate({ secret, address: ADDRESS })).kind).to.equal('invalid')
  })

  it('refuses a revoked key 10 s after its revocation at the latest', async () => {
    const { authenticate, aKey, clock, store } = aGate()
    const { secret, key } = await aKey()
    await authenticate({ secret, address: ADDRESS })
    await store.revoke(key.keyId, 1)
    clock.advanceSeconds(FORGOTTEN_SECONDS)
    expect((await authenticate({ secret, address: ADDRESS })).kind).to.equal('invalid')
  })

  it('does not serve a key that is known as revoked behind a used-up address', async () => {
    const { authenticate, aKey, store, useUp } = aGate()
    const { secret, key } = await aKey()
    await store.revoke(key.keyId, 1)
    await authenticate({ secret, address: ADDRESS })
    await useUp(ADDRESS)
    expect((await authenticate({ secret, address: ADDRESS })).kind).to.equal('locked-out')
  })

  it('lets an outage of the store be an outage: nobody is refused for it, and no address is charged', async () => {
    const { authenticate, aKey, store, failuresLeft } = aGate()
    const { secret } = await aKey()
    store.answering = async () => {
      throw new StoreUnavailable('The store is away')
    }
    expect(await rejection(authenticate({ secret, address: ADDRESS }))).to.be.instanceOf(StoreUnavailable)
    expect(await failuresLeft()).to.equal(PER_MINUTE)
  })

  it('looks up no more of 100 keys guessed at the same time from one address than the address may fail', async () => {
    const { authenticate, aSecret, store } = aGate()
    const guesses = Array.from({ length: 100 }, () => authenticate({ secret: aSecret(), address: ADDRESS }))
    const kinds = (await Promise.all(guesses)).map(({ kind }) => kind)
    expect(kinds.filter((kind) => kind === 'invalid')).to.have.lengthOf(PER_MINUTE)
    expect(store.queries.length).to.be.at.most(PER_MINUTE)
  })

  it('verifies all of 50 good keys that come from one address at the same time, though it may fail only 5 times', async () => {
    const { authenticate, aKey, failuresLeft } = aGate()
    const issued = await Promise.all(Array.from({ length: 50 }, (_, index) => aKey({ owner: `Caller ${index}` })))
    const verified = await Promise.all(issued.map(({ secret }) => authenticate({ secret, address: ADDRESS })))
    expect(verified).to.deep.equal(issued.map(({ key }) => ({ kind: 'verified', key })))
    expect(await failuresLeft()).to.equal(PER_MINUTE)
  })

  it('lets keys guessed from one address hold up neither another address nor a key that this replica knows', async () => {
    const { authenticate, aKey, aSecret, store } = aGate()
    const [known, other] = [await aKey({ owner: 'Known' }), await aKey({ owner: 'Other' })]
    await authenticate({ secret: known.secret, address: ADDRESS })

    let answer = () => {}
    const answered = new Promise<void>((resolve) => {
      answer = resolve
    })
    store.answering = () => answered
    const guesses = Promise.all(Array.from({ length: 20 }, () => authenticate({ secret: aSecret(), address: ADDRESS })))
    await new Promise((resolve) => setImmediate(resolve))
    expect(store.queries).to.have.lengthOf(1 + PER_MINUTE)
    store.answering = async () => {}
    expect((await authenticate({ secret: other.secret, address: '192.0.2.2' })).kind).to.equal('verified')
    expect((await authenticate({ secret: known.secret, address: ADDRESS })).kind).to.equal('verified')
    answer()
    expect((await guesses).filter(({ kind }) => kind === 'invalid')).to.have.lengthOf(PER_MINUTE)
  })

  it('gives an outage of the store to all of 50 callers of one address who wait for a look-up, and serves them when it is over', async () => {
    const { authenticate, aKey, store, failuresLeft } = aGate()
    const issued = await Promise.all(Array.from({ length: 50 }, (_, index) => aKey({ owner: `Caller ${index}` })))
    store.answering = async () => {
      throw new StoreUnavailable('The store is away')
    }
    const failures = await Promise.all(issued.map(({ secret }) => rejection(authenticate({ secret, address: ADDRESS }))))
    for (const failure of failures) expect(failure).to.be.instanceOf(StoreUnavailable)
    expect(await failuresLeft()).to.equal(PER_MINUTE)
    store.answering = async () => {}
    const verified = await Promise.all(issued.map(({ secret }) => authenticate({ secret, address: ADDRESS })))
    expect(verified.filter(({ kind }) => kind === 'verified')).to.have.lengthOf(50)
  })
})

describe('1,000 keys that are new to this replica, from one address at once', () => {
  it('are all served, each after keyVersion for the quota of its address three times at most', async () => {
    const { authenticate, aKey, peeks } = aGate()
    const secrets = await Promise.all(Array.from({ length: 1000 }, async (_, at) => (await aKey({ keyId: `key_${at}` })).secret))
    const kinds = (await Promise.all(secrets.map((secret) => authenticate({ secret, address: ADDRESS })))).map(({ kind }) => kind)
    expect(new Set(kinds)).to.deep.equal(new Set(['verified']))
    expect(peeks()).to.be.at.most(3000)
  })
})

describe('keys that wait for their turn behind an address that may fail only once more', () => {
  async function waitingKeys(count: number) {
    const gate = aGate()
    for (let failure = 1; failure < PER_MINUTE; failure += 1) await gate.authenticate({ secret: 'malformed', address: ADDRESS })
    const secrets = await Promise.all(Array.from({ length: count }, async (_, at) => (await gate.aKey({ keyId: `key_${at}` })).secret))
    return { ...gate, authenticateAll: () => Promise.allSettled(secrets.map((secret) => gate.authenticate({ secret, address: ADDRESS }))) }
  }

  it('are served also when the one before them fails for want of a quota', async () => {
    const { authenticateAll, failPeek } = await waitingKeys(3)
    failPeek(4)
    const settled = await authenticateAll()
    expect(settled.filter(({ status }) => status === 'rejected')).to.have.lengthOf(1)
  })

  it('are looked up side by side once the minute has changed', async () => {
    const { authenticateAll, store, clock } = await waitingKeys(4)
    let underWay = 0
    let most = 0
    store.answering = async () => {
      underWay += 1
      most = Math.max(most, underWay)
      await new Promise(setImmediate)
      clock.advanceSeconds(60)
      underWay -= 1
    }
    await authenticateAll()
    expect(most).to.equal(3)
  })
})

type Gate = ReturnType<typeof aGate>

function invalidKeys(): Record<string, (gate: Gate) => Promise<string>> {
  return {
    'a malformed key': async () => 'pst_live_nonsense',
    'a mistyped key': async ({ aSecret }) => mistyped(aSecret()),
    'an unknown key': async ({ aSecret }) => aSecret(),
    'an expired key': async ({ aKey, clock }) => (await aKey({ expiresAtMs: clock.nowMs() })).secret,
    'a revoked key': async ({ aKey }) => (await aKey({ revokedAtMs: 1 })).secret,
  }
}

/** Its last character is another. */
function mistyped(secret: string): string {
  return secret.slice(0, -1) + (secret.endsWith('0') ? '1' : '0')
}

function asked(secret: string | undefined): { secret?: string; address: string } {
  return { address: ADDRESS, ...(secret === undefined ? {} : { secret }) }
}

function minuteEndSeconds(clock: MovableClock): number {
  return Math.floor(clock.nowMs() / 60_000) * 60 + 60
}

function aGate() {
  const clock = new MovableClock()
  const store = new WatchedApiKeyStore()
  const secrets = new CryptoApiKeySecrets()
  const failedAuthentications = new MemoryFailedAuthentications(PER_MINUTE, clock)
  const apiKeys = new CachedApiKeyLookup(store, clock)
  const peek = failedAuthentications.peek.bind(failedAuthentications)
  let peeked = 0
  let failing: number | undefined
  failedAuthentications.peek = (address) => {
    peeked += 1
    return peeked === failing ? Promise.reject(new Error('No answer')) : peek(address)
  }
  return {
    /** Makes the `nth` keyVersion for the quota of an address fail. */
    failPeek: (nth: number) => {
      failing = nth
    },
    /** How often the quota of an address was asked for. */
    peeks: () => peeked,
    clock,
    store,
    failedAuthentications,
    authenticate: makeAuthenticate({ secrets, apiKeys, failedAuthentications, clock }),
    /** The right shape and checksum, and nobody's. */
    aSecret: () => secrets.generate().secret,
    aKey: async (overrides: Partial<ApiKey> = {}): Promise<{ secret: string; key: ApiKey }> => {
      const { secret, ...publicPart } = secrets.generate()
      const key = anApiKey('one', { ...publicPart, ...overrides })
      await store.insert(key)
      return { secret, key }
    },
    failuresLeft: async () => (await failedAuthentications.peek(ADDRESS)).remaining,
    useUp: async (address: string): Promise<void> => {
      for (let count = 0; count < PER_MINUTE; count++) await failedAuthentications.count(address)
    },
  }
}
