import type { ChangedApiKey } from '../announce-change.js'
import { announceChange } from '../announce-change.js'
import { changeApiKey } from '../change-api-key.js'
import type { ApiKeyStore } from '../ports/api-key-store.js'
import type { Clock } from '../ports/clock.js'
import type { QuotaControl } from '../ports/quota-control.js'

/** Invalidates the old secret of a key now. A key without an old secret stays unchanged. `by` is the operator. Throws `ApiKeyNotFound`. */
export type FinishRotation = (keyId: string, by: string) => Promise<ChangedApiKey>

export function makeFinishRotation(ports: { apiKeyStore: ApiKeyStore; quotaControl: QuotaControl; clock: Clock }): FinishRotation {
  return async (keyId, by) => {
    const finished = await changeApiKey(ports, keyId, by, ({ oldSecret, ...key }) => {
      if (!oldSecret) return undefined
      const { hint, expiresAtMs } = oldSecret
      return { key, change: { action: 'rotation-finished', before: { oldSecret: { hint, expiresAtMs } }, after: {} } }
    })
    return announceChange(ports.quotaControl, finished)
  }
}
