import { ContainerModule } from 'inversify'
import type { ApiKeyAdmin } from '../adapters/cli/api-key-admin.js'
import type { Config } from '../config.js'
import { makeChangeApiKeyPlan } from '../core/use-cases/change-api-key-plan.js'
import { makeFinishRotation } from '../core/use-cases/finish-rotation.js'
import { makeIssueApiKey } from '../core/use-cases/issue-api-key.js'
import { makeListApiKeyHistory } from '../core/use-cases/list-api-key-history.js'
import { makeListApiKeys } from '../core/use-cases/list-api-keys.js'
import { makeRevokeApiKey } from '../core/use-cases/revoke-api-key.js'
import { makeRotateApiKey } from '../core/use-cases/rotate-api-key.js'
import { makeShowApiKey } from '../core/use-cases/show-api-key.js'
import { makeShowUsage } from '../core/use-cases/show-usage.js'
import { makeUnbanApiKey } from '../core/use-cases/unban-api-key.js'
import { TOKENS } from './tokens.js'

/** The use cases of `petstore keys`. */
export function apiKeysModule({ plans }: Config): ContainerModule {
  return new ContainerModule(({ bind }) => {
    bind(TOKENS.apiKeyAdmin).toResolvedValue(
      (apiKeyStore, apiKeyHistory, secrets, quotaControl, clock): ApiKeyAdmin => {
        const showApiKey = makeShowApiKey({ apiKeyStore })
        return {
          issue: makeIssueApiKey({ apiKeyStore, secrets, clock, plans }),
          list: makeListApiKeys({ apiKeyStore, clock }),
          show: showApiKey,
          changePlan: makeChangeApiKeyPlan({ apiKeyStore, quotaControl, clock, plans }),
          revoke: makeRevokeApiKey({ apiKeyStore, quotaControl, clock }),
          rotate: makeRotateApiKey({ apiKeyStore, quotaControl, secrets, clock }),
          finishRotation: makeFinishRotation({ apiKeyStore, quotaControl, clock }),
          showUsage: makeShowUsage({ showApiKey, quotaControl, plans }),
          unban: makeUnbanApiKey({ showApiKey, quotaControl, apiKeyHistory, clock }),
          history: makeListApiKeyHistory({ showApiKey, apiKeyHistory }),
          plans,
          nowMs: () => clock.nowMs(),
        }
      },
      [TOKENS.apiKeyStore, TOKENS.apiKeyHistory, TOKENS.secrets, TOKENS.quotaControl, TOKENS.clock],
    )
  })
}
