import { randomBytes } from 'node:crypto'
import { ContainerModule } from 'inversify'
import { makeAdminApp } from '../adapters/http/admin/admin-app.js'
import { Health } from '../adapters/http/admin/health.js'
import { Metrics } from '../adapters/http/admin/metrics.js'
import { makeApp } from '../adapters/http/app.js'
import { makeCursors } from '../adapters/http/operations/cursor.js'
import { makeCreatePetOperation } from '../adapters/http/operations/create-pet.js'
import { makeGetPetOperation } from '../adapters/http/operations/get-pet.js'
import { makeListOrdersOperation } from '../adapters/http/operations/list-orders.js'
import { makeListPetsOperation } from '../adapters/http/operations/list-pets.js'
import { CachedApiKeyLookup } from '../adapters/memory/cached-api-key-lookup.js'
import type { Config } from '../config.js'
import { makeAdmit } from '../core/use-cases/admit.js'
import { makeAuthenticate } from '../core/use-cases/authenticate.js'
import { makeCreatePet } from '../core/use-cases/create-pet.js'
import { makeEnsureGetPetOffered, makeGetPet } from '../core/use-cases/get-pet.js'
import { makeListOrders } from '../core/use-cases/list-orders.js'
import { makeListPets } from '../core/use-cases/list-pets.js'
import type { BackingService } from './tokens.js'
import { TOKENS } from './tokens.js'

/** The API, and what operators see of it on the admin port. */
export function httpModule(config: Config): ContainerModule {
  const { plans, publicUrl = '', cursorSecret = randomBytes(32).toString('hex') } = config
  return new ContainerModule(({ bind }) => {
    bind(TOKENS.metrics).toResolvedValue(() => new Metrics())
    bind(TOKENS.health).toResolvedValue(
      (dependencies: BackingService[] = []) => new Health(dependencies),
      [{ isMultiple: true, optional: true, serviceIdentifier: TOKENS.backingServices }],
    )
    bind(TOKENS.apiKeyLookup).toResolvedValue((store, clock) => new CachedApiKeyLookup(store, clock), [TOKENS.apiKeyStore, TOKENS.clock])
    bind(TOKENS.admit).toResolvedValue(
      (secrets, apiKeys, failedAuthentications, quotas, clock) =>
        makeAdmit({ authenticate: makeAuthenticate({ secrets, apiKeys, failedAuthentications, clock }), apiKeys, quotas, plans }),
      [TOKENS.secrets, TOKENS.apiKeyLookup, TOKENS.failedAuthentications, TOKENS.quotas, TOKENS.clock],
    )
    bind(TOKENS.operations).toResolvedValue(
      (pets, petIds, orders, idempotency, clock) => {
        const cursors = makeCursors(cursorSecret)
        return [
          makeListPetsOperation({ listPets: makeListPets({ pets }), cursors, publicUrl }),
          makeCreatePetOperation({ createPet: makeCreatePet({ pets, petIds, idempotency }), publicUrl }),
          makeGetPetOperation({ getPet: makeGetPet({ pets, clock }), ensureOffered: makeEnsureGetPetOffered({ clock }) }),
          makeListOrdersOperation({ listOrders: makeListOrders({ orders }), cursors, publicUrl }),
        ]
      },
      [TOKENS.pets, TOKENS.petIds, TOKENS.orders, TOKENS.idempotency, TOKENS.clock],
    )
    bind(TOKENS.api).toResolvedValue(
      (operations, admit, quotas, failedAuthentications, health, metrics, log) =>
        makeApp({ ...config, publicUrl, operations, admit, quotas, failedAuthentications, health, metrics, log }).callback(),
      [TOKENS.operations, TOKENS.admit, TOKENS.quotas, TOKENS.failedAuthentications, TOKENS.health, TOKENS.metrics, TOKENS.log],
    )
    bind(TOKENS.adminApi).toResolvedValue(
      (health, metrics, log) => makeAdminApp({ health, metrics, log }).callback(),
      [TOKENS.health, TOKENS.metrics, TOKENS.log],
    )
  })
}
