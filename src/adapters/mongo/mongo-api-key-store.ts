import type { Collection, Filter, UpdateFilter } from 'mongodb'
import type { ApiKey, StoredApiKey } from '../../core/api-key.js'
import { shouldRecordUse } from '../../core/api-key.js'
import type { PlanName, Subscription } from '../../core/plan.js'
import type { ApiKeyStore } from '../../core/ports/api-key-store.js'
import type { Clock } from '../../core/ports/clock.js'
import type { Limits } from '../../core/quota.js'
import { isDuplicateKeyError, SERVER_TIME_LIMIT } from './mongo-call.js'
import type { MongoConnection } from './mongo-connection.js'

interface ApiKeyDocument {
  /** The key ID. */
  _id: string
  secretHash: string
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
}

const NOT_REVOKED = { revokedAt: { $exists: false } }

export class MongoApiKeyStore implements ApiKeyStore {
  readonly #keys: Collection<ApiKeyDocument>

  constructor(
    private readonly mongo: MongoConnection,
    private readonly clock: Clock,
  ) {
    this.#keys = mongo.db.collection<ApiKeyDocument>('apiKeys')
  }

  async insert(key: ApiKey): Promise<'inserted' | 'taken'> {
    try {
      await this.mongo.call('apiKeys.insert', () => this.#keys.insertOne(toDocument(key), SERVER_TIME_LIMIT))
      return 'inserted'
    } catch (error) {
      if (isDuplicateKeyError(error)) return 'taken'
      throw error
    }
  }

  async findBySecretHash(secretHash: string): Promise<ApiKey | undefined> {
    const found = await this.mongo.call('apiKeys.find', () => this.#keys.findOne({ secretHash }, SERVER_TIME_LIMIT))
    if (!found) return undefined
    const { lastUsedAtMs, ...key } = toStoredKey(found)
    const nowMs = this.clock.nowMs()
    // Runs in the background: if it fails, the next lookup records the use.
    if (shouldRecordUse(key, lastUsedAtMs, nowMs))
      this.#update({ _id: found._id }, { $set: { lastUsedAt: new Date(nowMs) } }).catch(() => undefined)
    return key
  }

  async findById(keyId: string): Promise<StoredApiKey | undefined> {
    const found = await this.mongo.call('apiKeys.find', () => this.#keys.findOne({ _id: keyId }, SERVER_TIME_LIMIT))
    return found ? toStoredKey(found) : undefined
  }

  async list({ owner, plan }: { owner?: string; plan?: PlanName }): Promise<readonly StoredApiKey[]> {
    const filter = { ...(owner === undefined ? {} : { owner }), ...(plan === undefined ? {} : { plan }) }
    const found = await this.mongo.call('apiKeys.find', () =>
      this.#keys.find(filter, SERVER_TIME_LIMIT).sort({ createdAt: 1, _id: 1 }).toArray(),
    )
    return found.map(toStoredKey)
  }

  async changePlan(keyId: string, { plan, limits }: Subscription): Promise<StoredApiKey | undefined> {
    const change = limits ? { $set: { plan, limits } } : { $set: { plan }, $unset: { limits: true as const } }
    return this.#update({ _id: keyId, ...NOT_REVOKED }, { ...change, $inc: { generation: 1 } })
  }

  async revoke(keyId: string, atMs: number): Promise<StoredApiKey | undefined> {
    const revoked = await this.#update({ _id: keyId, ...NOT_REVOKED }, { $set: { revokedAt: new Date(atMs) }, $inc: { generation: 1 } })
    return revoked ?? this.findById(keyId)
  }

  async #update(filter: Filter<ApiKeyDocument>, update: UpdateFilter<ApiKeyDocument>): Promise<StoredApiKey | undefined> {
    const updated = await this.mongo.call('apiKeys.update', () =>
      this.#keys.findOneAndUpdate(filter, update, { returnDocument: 'after', ...SERVER_TIME_LIMIT }),
    )
    return updated ? toStoredKey(updated) : undefined
  }
}

function toDocument({ keyId, limits, createdAtMs, expiresAtMs, revokedAtMs, ...rest }: ApiKey): ApiKeyDocument {
  return {
    _id: keyId,
    secretHash: rest.secretHash,
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

function toStoredKey({ _id, limits, createdAt, expiresAt, revokedAt, lastUsedAt, ...rest }: ApiKeyDocument): StoredApiKey {
  return {
    keyId: _id,
    secretHash: rest.secretHash,
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
