import type { Collection, Db } from 'mongodb'
import type { OldSecret, StoredApiKey } from '../../core/api-key.js'
import type { ApiKeyChange } from '../../core/api-key-change.js'
import type { PlanName } from '../../core/plan.js'
import type { Limits } from '../../core/quota.js'

export interface ApiKeyDocument {
  /** The key ID. */
  _id: string
  secretHash: string
  oldSecret?: OldSecretDocument
  hint: string
  owner: string
  plan: PlanName
  limits?: Limits
  createdAt: Date
  /** The key version. The field keeps its original name, so that keys that are already stored stay valid. */
  generation: number
  expiresAt?: Date
  revokedAt?: Date
  lastUsedAt?: Date
  /** In the document of the key, so that a change and its entry are stored in one write. Absent if an earlier version issued the key. */
  history?: ChangeDocument[]
}

interface OldSecretDocument {
  hash: string
  hint: string
  expiresAt: Date
  lastUsedAt?: Date
}

export interface ChangeDocument extends Omit<ApiKeyChange, 'atMs'> {
  readonly at: Date
}

/** The fields that `toDocument` may omit. */
export const OPTIONAL_FIELDS = ['oldSecret', 'limits', 'expiresAt', 'revokedAt'] as const

export function getApiKeyCollection(db: Db): Collection<ApiKeyDocument> {
  return db.collection<ApiKeyDocument>('apiKeys')
}

export function toChangeDocument({ atMs, ...change }: ApiKeyChange): ChangeDocument {
  return { at: new Date(atMs), ...change }
}

/** The document without what only the store writes: the last use and the history. */
export function toDocument({ keyId, oldSecret, limits, createdAtMs, expiresAtMs, revokedAtMs, ...rest }: StoredApiKey): ApiKeyDocument {
  return {
    _id: keyId,
    secretHash: rest.secretHash,
    ...(oldSecret ? { oldSecret: toOldSecretDocument(oldSecret) } : {}),
    hint: rest.hint,
    owner: rest.owner,
    plan: rest.plan,
    ...(limits ? { limits: { minute: limits.minute, day: limits.day } } : {}),
    createdAt: new Date(createdAtMs),
    generation: rest.version,
    ...(expiresAtMs === undefined ? {} : { expiresAt: new Date(expiresAtMs) }),
    ...(revokedAtMs === undefined ? {} : { revokedAt: new Date(revokedAtMs) }),
  }
}

function toOldSecretDocument({ hash, hint, expiresAtMs, lastUsedAtMs }: OldSecret): OldSecretDocument {
  return { hash, hint, expiresAt: new Date(expiresAtMs), ...(lastUsedAtMs === undefined ? {} : { lastUsedAt: new Date(lastUsedAtMs) }) }
}

export function toStoredKey({
  _id,
  limits,
  oldSecret,
  createdAt,
  expiresAt,
  revokedAt,
  lastUsedAt,
  ...rest
}: ApiKeyDocument): StoredApiKey {
  return {
    keyId: _id,
    secretHash: rest.secretHash,
    ...(oldSecret ? { oldSecret: toOldSecret(oldSecret) } : {}),
    hint: rest.hint,
    owner: rest.owner,
    plan: rest.plan,
    ...(limits ? { limits: { minute: limits.minute, day: limits.day } } : {}),
    createdAtMs: createdAt.getTime(),
    version: rest.generation,
    ...(expiresAt ? { expiresAtMs: expiresAt.getTime() } : {}),
    ...(revokedAt ? { revokedAtMs: revokedAt.getTime() } : {}),
    ...(lastUsedAt ? { lastUsedAtMs: lastUsedAt.getTime() } : {}),
  }
}

function toOldSecret({ hash, hint, expiresAt, lastUsedAt }: OldSecretDocument): OldSecret {
  return { hash, hint, expiresAtMs: expiresAt.getTime(), ...(lastUsedAt ? { lastUsedAtMs: lastUsedAt.getTime() } : {}) }
}
