import type { PlanName, Plans } from '../../core/plan.js'
import type { Limits } from '../../core/quota.js'
import type { ChangeApiKeyPlan } from '../../core/use-cases/change-api-key-plan.js'
import type { FinishRotation } from '../../core/use-cases/finish-rotation.js'
import type { IssueApiKey } from '../../core/use-cases/issue-api-key.js'
import type { ListApiKeyHistory } from '../../core/use-cases/list-api-key-history.js'
import type { ListApiKeys } from '../../core/use-cases/list-api-keys.js'
import type { RevokeApiKey } from '../../core/use-cases/revoke-api-key.js'
import type { RotateApiKey } from '../../core/use-cases/rotate-api-key.js'
import type { ShowApiKey } from '../../core/use-cases/show-api-key.js'
import type { ShowUsage } from '../../core/use-cases/show-usage.js'
import type { UnbanApiKey } from '../../core/use-cases/unban-api-key.js'

/** The operations on API keys that operators can run. */
export interface ApiKeyAdmin {
  readonly issue: IssueApiKey
  readonly list: ListApiKeys
  readonly show: ShowApiKey
  readonly changePlan: ChangeApiKeyPlan
  readonly rotate: RotateApiKey
  readonly finishRotation: FinishRotation
  readonly revoke: RevokeApiKey
  readonly showUsage: ShowUsage
  readonly unban: UnbanApiKey
  readonly history: ListApiKeyHistory
  readonly plans: Plans
  /** Unix time in milliseconds. */
  nowMs(): number
}

export interface KeysCommandDeps {
  /** Connects to the storage, runs `work` and disconnects. */
  readonly withApiKeyAdmin: (work: (admin: ApiKeyAdmin) => Promise<void>) => Promise<void>
  readonly print: (text: string) => void
  /** Called for each change of a key, after it was made, and not for a command that changed nothing. */
  readonly audit: (change: AuditedChange) => void
  /** The name of the user who runs the command. */
  readonly systemUser: () => string
}

/** Contains no secret. */
export interface AuditedChange {
  readonly msg:
    | 'API key issued'
    | 'plan of API key changed'
    | 'API key rotated'
    | 'rotation of API key finished'
    | 'API key revoked'
    | 'API key unbanned'
  /** The operator. */
  readonly by: string
  readonly keyId: string
  readonly owner: string
  readonly plan: PlanName
  readonly limits: Limits | undefined
  /** The new secret of a rotated key. */
  readonly hint?: string | undefined
  /** The secret that a rotation replaced. */
  readonly oldHint?: string | undefined
  /** The end of the grace period of a rotation, in ISO 8601. Absent if there is none. */
  readonly oldSecretExpiresAt?: string
}
