import type { ApiKey, OldSecret } from './api-key.js'

/** What an operator can do to a key. */
export type ApiKeyAction = 'issued' | 'plan-changed' | 'rotated' | 'rotation-finished' | 'revoked' | 'unbanned'

/** Values of a key before or after a change. Contains neither a secret nor a hash of one. */
export interface ApiKeyValues extends Partial<Pick<ApiKey, 'plan' | 'limits' | 'hint' | 'expiresAtMs' | 'revokedAtMs'>> {
  readonly oldSecret?: Pick<OldSecret, 'hint' | 'expiresAtMs'>
  readonly isBanned?: boolean
}

/** One change of a key, as its history keeps it. */
export interface ApiKeyChange {
  readonly atMs: number
  /** The operator who made the change. */
  readonly by: string
  readonly action: ApiKeyAction
  /** The values that the change replaced or removed. */
  readonly before: ApiKeyValues
  /** The values that replaced them or were added. */
  readonly after: ApiKeyValues
}
