import { expect } from 'chai'
import { CachedApiKeyVerifier } from '../../src/adapters/memory/cached-api-key-verifier.js'
import { MemoryApiKeyHistory } from '../../src/adapters/memory/memory-api-key-history.js'
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
import type { ApiKeyHistory } from '../../src/core/ports/api-key-history.js'
import type { FailedAuthentications } from '../../src/core/ports/failed-authentications.js'
import type { QuotaControl } from '../../src/core/ports/quota-control.js'
import type { QuotaStore } from '../../src/core/ports/quota-store.js'
import type { SeedStore } from '../../src/core/ports/seed-store.js'
import { describeApiKeyHistory } from './api-key-history.contract.js'
import { describeApiKeySecrets } from './api-key-secrets.contract.js'
import { describeApiKeyStore } from './api-key-store.contract.js'
import { describeApiKeyVerifier } from './api-key-verifier.contract.js'
import { describeFailedAuthentications } from './failed-authentications.contract.js'
import { describeIdempotencyStore } from './idempotency-store.contract.js'
import { MovableClock } from '../support/movable-clock.js'
import { MemorySeedStore } from '../support/memory-seed-store.js'
import type { OpenAdapter, Outage } from './open-adapter.js'
import { describeOrderStore } from './order-store.contract.js'
import { describePetIds } from './pet-ids.contract.js'
import { describePetStore } from './pet-store.contract.js'
import { describeQuotaControl } from './quota-control.contract.js'
import { describeQuotaStore } from './quota-store.contract.js'
import { describeUsageReader } from './usage-reader.contract.js'
import { rejection } from './rejection.js'
import { describeSeedStore } from './seed-store.contract.js'

// Memory adapters have no outages. To run the outage tests of the suites without an engine, the adapters get a simulated connection that can be cut.
let isConnectionCut = false
const outage: Outage = {
  async begin() {
    isConnectionCut = true
  },
  async end() {
    isConnectionCut = false
  },
}

describePetStore('in memory', async () => opened(failDuringOutage(new MemoryPetStore())), outage)
describeOrderStore('in memory', async (orders) => opened(failDuringOutage(new MemoryOrderStore(orders))), outage)
describePetIds('in memory', async (last) => opened(failDuringOutage(new MemoryPetIds(last))), outage)
describeIdempotencyStore('in memory', async (clock) => opened(failDuringOutage(new MemoryIdempotencyStore(clock))), outage)
describeApiKeyStore('in memory', async (clock) => opened(failDuringOutage(new MemoryApiKeyStore(clock))), outage)
describeApiKeyHistory(
  'in memory',
  async () => {
    const history = new MemoryApiKeyHistory()
    return opened({ apiKeys: new MemoryApiKeyStore(new MovableClock(), history), history: failDuringOutage<ApiKeyHistory>(history) })
  },
  outage,
)
describeSeedStore(
  'that tests have in memory',
  async () => {
    const seedStore = new MemorySeedStore()
    const { pets, petIds, orders } = seedStore
    return opened({ seedStore: failDuringOutage<SeedStore>(seedStore), pets, petIds, orders })
  },
  outage,
)
describeApiKeyVerifier('with a cache', (ports) => new CachedApiKeyVerifier(ports))
describeApiKeySecrets('of node:crypto', () => new CryptoApiKeySecrets())
describeQuotaStore(
  'in memory',
  async (clock) => opened(withFallback<QuotaStore>(new MemoryQuotaStore(clock), new MemoryQuotaStore(clock))),
  outage,
)
describeQuotaControl(
  'in memory',
  async (clock) => {
    const quotas = new MemoryQuotaStore(clock)
    return opened({ quotas, control: failDuringOutage<QuotaControl>(quotas) })
  },
  outage,
)
describeUsageReader('in memory', async (clock) => {
  const store = new MemoryQuotaStore(clock)
  return opened({ reader: store, quotas: store, control: store })
})
describeFailedAuthentications(
  'in memory',
  async (perMinute, clock) =>
    opened(
      withFallback<FailedAuthentications>(
        new MemoryFailedAuthentications(perMinute, clock),
        new MemoryFailedAuthentications(perMinute, clock),
      ),
    ),
  outage,
)

describe('the pet IDs in memory', () => {
  it('include 2^53 − 1 and end there', async () => {
    const petIds = new MemoryPetIds(MAX_ASSIGNED_ID - 2n)
    expect([await petIds.next(), await petIds.next()]).to.deep.equal([MAX_ASSIGNED_ID - 1n, MAX_ASSIGNED_ID])
    expect(await rejection(petIds.next())).to.be.instanceOf(Error)
  })

  it('are consecutive, and start with 1 by default', async () => {
    const petIds = new MemoryPetIds()
    expect([await petIds.next(), await petIds.next(), await petIds.next()]).to.deep.equal([1n, 2n, 3n])
  })
})

/** Memory adapters have neither other replicas nor restarts, so there is only this object. */
function opened<Port>(port: Port): OpenAdapter<Port> {
  return { port, reopen: async () => port, close: async () => {} }
}

function failDuringOutage<Port extends object>(port: Port): Port {
  return withFallback(
    port,
    new Proxy(port, {
      get: () => async () => {
        throw new StoreUnavailable('The connection is cut')
      },
    }),
  )
}

/** Calls `port`, or `fallback` while the connection is cut. */
function withFallback<Port extends object>(port: Port, fallback: Port): Port {
  return new Proxy(port, {
    get: (_, name) => {
      const target = isConnectionCut ? fallback : port
      const method: unknown = Reflect.get(target, name)
      return typeof method === 'function' ? method.bind(target) : method
    },
  })
}
