import type { Cancellation } from '../cancellation.js'
import type { Plans } from '../plan.js'
import { toQuotaRules } from '../plan.js'
import type { ApiKeyVerifier, Caller } from '../ports/api-key-verifier.js'
import type { UsageReader } from '../ports/usage-reader.js'
import type { QuotaUsage } from '../quota.js'
import type { Authenticate, Credentials, FailedAuthentication } from './authenticate.js'
import { runWithCurrentRecord } from './authenticate.js'

/** The usage of the caller's verified key. */
export interface OwnUsage extends Caller {
  readonly kind: 'usage'
  readonly usage: QuotaUsage
}

/** Authenticates the caller and returns the usage of the key. Charges nothing. If the signal is aborted, throws its reason. */
export type ShowOwnUsage = (credentials: Credentials, signal?: Cancellation) => Promise<FailedAuthentication | OwnUsage>

export function makeShowOwnUsage(ports: {
  authenticate: Authenticate
  apiKeyVerifier: ApiKeyVerifier
  usageReader: UsageReader
  plans: Plans
}): ShowOwnUsage {
  return (credentials, signal) =>
    runWithCurrentRecord<OwnUsage>(ports, { credentials, signal }, async (caller, keyVersion) => {
      const { key } = caller
      const usage = await ports.usageReader.readUsage(key.keyId, toQuotaRules(key, ports.plans), keyVersion)
      return 'kind' in usage ? usage : { ...caller, kind: 'usage', usage }
    })
}
