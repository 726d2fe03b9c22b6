import { expect } from 'chai'
import { CachedApiKeyVerifier } from '../../src/adapters/memory/cached-api-key-verifier.js'
import { MemoryApiKeyStore } from '../../src/adapters/memory/memory-api-key-store.js'
import { MemoryFailedAuthentications } from '../../src/adapters/memory/memory-failed-authentications.js'
import { MemoryIdempotencyStore } from '../../src/adapters/memory/memory-idempotency-store.js'
import { MemoryOrderStore } from '../../src/adapters/memory/memory-order-store.js'
import { MemoryPetIds } from '../../src/adapters/memory/memory-pet-ids.js'
import { MemoryPetStore } from '../../src/adapters/memory/memory-pet-store.js'
import { MemoryQuotaStore } from '../../src/adapters/memory/memory-quota-store.js'
import { CryptoApiKeySecrets } from '../../src/adapters/node/crypto-api-key-secrets.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import { MAX_ASSIGNED_ID } from '../../src/core/int64.js'
import type { FailedAuthentications } from '../../src/core/ports/failed-authentications.js'
import type { QuotaControl } from '../../src/core/ports/quota-control.js'
import type { QuotaStore } from '../../src/core/ports/quota-store.js'
import type { SeedStore } from '../../src/core/ports/seed-store.js'
import { describeApiKeySecrets } from './api-key-secrets.contract.js'
import { describeApiKeyStore } from './api-key-store.contract.js'
import { describeApiKeyVerifier } from './api-key-verifier.contract.js'
import { describeFailedAuthentications } from './failed-authentications.contract.js'
import { describeIdempotencyStore } from './idempotency-store.contract.js'
import { MemorySeedStore } from '../support/memory-seed-store.js'
import type { Opened, Outage } from './opened.js'
import { describeOrderStore } from './order-store.contract.js'
import { describePetIds } from './pet-ids.contract.js'
import { describePetStore } from './pet-store.contract.js'
import { describeQuotaControl } from './quota-control.contract.js'
import { describeQuotaStore } from './quota-store.contract.js'
import { rejection } from './rejection.js'
import { describeSeedStore } from './seed-store.contract.js'

// Memory has no outages. So that the suites' outage tests are seen to work before a real engine runs them,
// the memory adapters stand behind a line here, which can be cut. Uncut, it passes everything through.
let isCut = false
const line: Outage = {
  async begin() {
    isCut = true
  },
  async end() {
    isCut = false
  },
}

describePetStore('in memory', async () => opened(behindLine(new MemoryPetStore())), line)
describeOrderStore('in memory', async (orders) => opened(behindLine(new MemoryOrderStore(orders))), line)
describePetIds('in memory', async (last) => opened(behindLine(new MemoryPetIds(last))), line)
describeIdempotencyStore('in memory', async (clock) => opened(behindLine(new MemoryIdempotencyStore(clock))), line)
describeApiKeyStore('in memory', async (clock) => opened(behindLine(new MemoryApiKeyStore(clock))), line)
describeSeedStore(
  'that tests have in memory',
  async () => {
    const seedStore = new MemorySeedStore()
    const { pets, petIds, orders } = seedStore
    return opened({ seedStore: behindLine<SeedStore>(seedStore), pets, petIds, orders })
  },
  line,
)
describeApiKeyVerifier('with a cache', (ports) => new CachedApiKeyVerifier(ports))
describeApiKeySecrets('of node:crypto', () => new CryptoApiKeySecrets())
describeQuotaStore(
  'in memory',
  async (clock) => opened(withFallback<QuotaStore>(new MemoryQuotaStore(clock), new MemoryQuotaStore(clock))),
  line,
)
describeQuotaControl(
  'in memory',
  async (clock) => {
    const quotas = new MemoryQuotaStore(clock)
    return opened({ quotas, control: behindLine<QuotaControl>(quotas) })
  },
  line,
)
describeFailedAuthentications(
  'in memory',
  async (perMinute, clock) =>
    opened(
      withFallback<FailedAuthentications>(
        new MemoryFailedAuthentications(perMinute, clock),
        new MemoryFailedAuthentications(perMinute, clock),
      ),
    ),
  line,
)

describe('the pet ids in memory', () => {
  it('are all given out, 2^53 − 1 too', async () => {
    const petIds = new MemoryPetIds(MAX_ASSIGNED_ID - 2n)
    expect([await petIds.next(), await petIds.next()]).to.deep.equal([MAX_ASSIGNED_ID - 1n, MAX_ASSIGNED_ID])
    expect(await rejection(petIds.next())).to.be.instanceOf(Error)
  })

  it('follow each other without gaps, from 1 on where nothing else is said', async () => {
    const petIds = new MemoryPetIds()
    expect([await petIds.next(), await petIds.next(), await petIds.next()]).to.deep.equal([1n, 2n, 3n])
  })
})

/** All that is there is this object: another replica, or a restart, cannot be had in memory. */
function opened<Port>(port: Port): Opened<Port> {
  return { port, reopen: async () => port, close: async () => {} }
}

function behindLine<Port extends object>(port: Port): Port {
  return withFallback(
    port,
    new Proxy(port, {
      get: () => async () => {
        throw new StoreUnavailable('The line is cut')
      },
    }),
  )
}

/** `port` while the line holds, `fallback` while it is cut. */
function withFallback<Port extends object>(port: Port, fallback: Port): Port {
  return new Proxy(port, {
    get: (_, name) => {
      const answering = isCut ? fallback : port
      const method: unknown = Reflect.get(answering, name)
      return typeof method === 'function' ? method.bind(answering) : method
    },
  })
}
