import type { ApiKey } from '../api-key.js'
import type { ApiKeyChange } from '../api-key-change.js'
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

/** `by` is the operator. Throws `LimitsRequired`. */
export type IssueApiKey = (newKey: NewApiKey, by: string) => Promise<IssuedApiKey>

export function makeIssueApiKey(ports: { apiKeyStore: ApiKeyStore; secrets: ApiKeySecrets; clock: Clock; plans: Plans }): IssueApiKey {
  return async (newKey, by) => {
    requireLimits(newKey, ports.plans)
    const { secret, keyId, secretHash, hint } = ports.secrets.generate()
    const values = {
      hint,
      plan: newKey.plan,
      ...(newKey.limits ? { limits: newKey.limits } : {}),
      ...(newKey.expiresAtMs === undefined ? {} : { expiresAtMs: newKey.expiresAtMs }),
    }
    const createdAtMs = ports.clock.nowMs()
    const key: ApiKey = { keyId, secretHash, owner: newKey.owner, ...values, createdAtMs, version: 1 }
    const issue: ApiKeyChange = { atMs: createdAtMs, by, action: 'issued', before: {}, after: values }
    if ((await ports.apiKeyStore.insert(key, issue)) === 'taken')
      throw new Error('A generated API key already exists: the random number generator is broken')
    return { key, secret }
  }
}
