import type { ApiKey } from '../api-key.js'
import type { PlanName, Plans } from '../plan.js'
import { requireLimits } from '../plan.js'
import type { ApiKeySecrets } from '../ports/api-key-secrets.js'
import type { ApiKeyStore } from '../ports/api-key-store.js'
import type { Clock } from '../ports/clock.js'
import type { Limits } from '../quota.js'

export interface NewApiKey {
  readonly owner: string
  readonly plan: PlanName
  /** Required if the plan has no limits (enterprise). */
  readonly limits?: Limits
  readonly expiresAtMs?: number
}

export interface IssuedApiKey {
  readonly key: ApiKey
  /** Show it to the owner now: it is not stored. */
  readonly secret: string
}

/** Throws `LimitsRequired`. */
export type IssueApiKey = (newKey: NewApiKey) => Promise<IssuedApiKey>

export function makeIssueApiKey(ports: { apiKeyStore: ApiKeyStore; secrets: ApiKeySecrets; clock: Clock; plans: Plans }): IssueApiKey {
  return async (newKey) => {
    requireLimits(newKey, ports.plans)
    const { secret, keyId, secretHash, hint } = ports.secrets.generate()
    const key: ApiKey = {
      keyId,
      secretHash,
      hint,
      owner: newKey.owner,
      plan: newKey.plan,
      ...(newKey.limits ? { limits: newKey.limits } : {}),
      createdAtMs: ports.clock.nowMs(),
      version: 1,
      ...(newKey.expiresAtMs === undefined ? {} : { expiresAtMs: newKey.expiresAtMs }),
    }
    if ((await ports.apiKeyStore.insert(key)) === 'taken')
      throw new Error('A generated API key already exists: the random number generator is broken')
    return { key, secret }
  }
}
