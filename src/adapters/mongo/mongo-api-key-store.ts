import type { Collection, Db, Filter, UpdateFilter } from 'mongodb'
import type { ApiKey, StoredApiKey } from '../../core/api-key.js'
import { isUseToNote } from '../../core/api-key.js'
import type { PlanName, Subscription } from '../../core/plan.js'
import type { ApiKeyStore } from '../../core/ports/api-key-store.js'
import type { Clock } from '../../core/ports/clock.js'
import type { Limits } from '../../core/quota.js'
import { callMongo, isDuplicateKey, SERVER_TIME_LIMIT } from './mongo-call.js'

interface ApiKeyDocument {
  /** The key id. */
  _id: string
  secretHash: string
  hint: string
  owner: string
  plan: PlanName
  limits?: Limits
  createdAt: Date
  generation: number
  expiresAt?: Date
  revokedAt?: Date
  lastUsedAt?: Date
}

export class MongoApiKeyStore implements ApiKeyStore {
  readonly #keys: Collection<ApiKeyDocument>

  constructor(
    db: Db,
    private readonly clock: Clock,
  ) {
    this.#keys = db.collection<ApiKeyDocument>('apiKeys')
  }

  async insert(key: ApiKey): Promise<'inserted' | 'taken'> {
    try {
      await callMongo(() => this.#keys.insertOne(toDocument(key), SERVER_TIME_LIMIT))
      return 'inserted'
    } catch (error) {
      if (isDuplicateKey(error)) return 'taken'
      throw error
    }
  }

  async findBySecretHash(secretHash: string): Promise<ApiKey | undefined> {
    const found = await callMongo(() => this.#keys.findOne({ secretHash }, SERVER_TIME_LIMIT))
    if (!found) return undefined
    const { lastUsedAtMs, ...key } = toStoredKey(found)
    const nowMs = this.clock.nowMs()
    // Nobody waits for the note, and no request fails for it: the next look-up makes it anew.
    if (isUseToNote(key, lastUsedAtMs, nowMs))
      this.#change({ _id: found._id }, { $set: { lastUsedAt: new Date(nowMs) } }).catch(() => undefined)
    return key
  }

  async findById(keyId: string): Promise<StoredApiKey | undefined> {
    const found = await callMongo(() => this.#keys.findOne({ _id: keyId }, SERVER_TIME_LIMIT))
    return found ? toStoredKey(found) : undefined
  }

  async list({ owner, plan }: { owner?: string; plan?: PlanName }): Promise<readonly StoredApiKey[]> {
    const filter = { ...(owner === undefined ? {} : { owner }), ...(plan === undefined ? {} : { plan }) }
    const found = await callMongo(() => this.#keys.find(filter, SERVER_TIME_LIMIT).sort({ createdAt: 1, _id: 1 }).toArray())
    return found.map(toStoredKey)
  }

  async changePlan(keyId: string, { plan, limits }: Subscription): Promise<StoredApiKey | undefined> {
    const ownLimits = limits ? { $set: { plan, limits } } : { $set: { plan }, $unset: { limits: true as const } }
    return this.#change({ _id: keyId }, { ...ownLimits, $inc: { generation: 1 } })
  }

  async revoke(keyId: string, atMs: number): Promise<StoredApiKey | undefined> {
    const revoked = await this.#change(
      { _id: keyId, revokedAt: { $exists: false } },
      { $set: { revokedAt: new Date(atMs) }, $inc: { generation: 1 } },
    )
    return revoked ?? this.findById(keyId)
  }

  async #change(filter: Filter<ApiKeyDocument>, update: UpdateFilter<ApiKeyDocument>): Promise<StoredApiKey | undefined> {
    const changed = await callMongo(() => this.#keys.findOneAndUpdate(filter, update, { returnDocument: 'after', ...SERVER_TIME_LIMIT }))
    return changed ? toStoredKey(changed) : undefined
  }
}

function toDocument({ keyId, limits, createdAtMs, expiresAtMs, revokedAtMs, ...same }: ApiKey): ApiKeyDocument {
  return {
    _id: keyId,
    secretHash: same.secretHash,
    hint: same.hint,
    owner: same.owner,
    plan: same.plan,
    ...(limits ? { limits: { minute: limits.minute, day: limits.day } } : {}),
    createdAt: new Date(createdAtMs),
    generation: same.version,
    ...(expiresAtMs === undefined ? {} : { expiresAt: new Date(expiresAtMs) }),
    ...(revokedAtMs === undefined ? {} : { revokedAt: new Date(revokedAtMs) }),
  }
}

function toStoredKey({ _id, limits, createdAt, expiresAt, revokedAt, lastUsedAt, ...same }: ApiKeyDocument): StoredApiKey {
  return {
    keyId: _id,
    secretHash: same.secretHash,
    hint: same.hint,
    owner: same.owner,
    plan: same.plan,
    ...(limits ? { limits: { minute: limits.minute, day: limits.day } } : {}),
    createdAtMs: createdAt.getTime(),
    version: same.generation,
    ...(expiresAt ? { expiresAtMs: expiresAt.getTime() } : {}),
    ...(revokedAt ? { revokedAtMs: revokedAt.getTime() } : {}),
    ...(lastUsedAt ? { lastUsedAtMs: lastUsedAt.getTime() } : {}),
  }
}
