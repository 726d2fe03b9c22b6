import type { Collection, Filter, UpdateFilter } from 'mongodb'
import type { ApiKey, StoredApiKey } from '../../core/api-key.js'
import { shouldRecordUse } from '../../core/api-key.js'
import type { ApiKeyChange } from '../../core/api-key-change.js'
import type { PlanName } from '../../core/plan.js'
import type { ApiKeyStore } from '../../core/ports/api-key-store.js'
import type { Clock } from '../../core/ports/clock.js'
import type { ApiKeyDocument } from './api-key-document.js'
import { getApiKeyCollection, OPTIONAL_FIELDS, toChangeDocument, toDocument, toStoredKey } from './api-key-document.js'
import { isDuplicateKeyError, SERVER_TIME_LIMIT } from './mongo-call.js'
import type { MongoConnection } from './mongo-connection.js'

const WITHOUT_HISTORY = { projection: { history: 0 }, ...SERVER_TIME_LIMIT }

export class MongoApiKeyStore implements ApiKeyStore {
  readonly #keys: Collection<ApiKeyDocument>

  constructor(
    private readonly mongo: MongoConnection,
    private readonly clock: Clock,
  ) {
    this.#keys = getApiKeyCollection(mongo.db)
  }

  async insert(key: ApiKey, issue: ApiKeyChange): Promise<'inserted' | 'taken'> {
    const document = { ...toDocument(key), history: [toChangeDocument(issue)] }
    try {
      await this.mongo.call('apiKeys.insert', () => this.#keys.insertOne(document, SERVER_TIME_LIMIT))
      return 'inserted'
    } catch (error) {
      if (isDuplicateKeyError(error)) return 'taken'
      throw error
    }
  }

  async findBySecretHash(secretHash: string): Promise<ApiKey | undefined> {
    // In this order: during a rotation, a secret becomes the old one. In one query with `$or`, each condition could miss it.
    const stored = (await this.#findOne({ secretHash })) ?? (await this.#findOne({ 'oldSecret.hash': secretHash }))
    if (!stored) return undefined
    const nowMs = this.clock.nowMs()
    const { lastUsedAtMs, ...key } = stored
    if (shouldRecordUse(key, { secretHash, lastUsedAtMs }, nowMs)) this.#recordUse(key, secretHash, new Date(nowMs))
    return key
  }

  async findById(keyId: string): Promise<StoredApiKey | undefined> {
    return this.#findOne({ _id: keyId })
  }

  async list({ owner, plan }: { owner?: string; plan?: PlanName }): Promise<readonly StoredApiKey[]> {
    const filter = { ...(owner === undefined ? {} : { owner }), ...(plan === undefined ? {} : { plan }) }
    const found = await this.mongo.call('apiKeys.find', () =>
      this.#keys.find(filter, WITHOUT_HISTORY).sort({ createdAt: 1, _id: 1 }).toArray(),
    )
    return found.map(toStoredKey)
  }

  async update(key: StoredApiKey, change: ApiKeyChange): Promise<'updated' | 'conflict'> {
    const { _id, ...fields } = toDocument(key)
    const absent = OPTIONAL_FIELDS.filter((name) => !(name in fields))
    const updated = await this.#update(
      { _id, generation: key.version - 1 },
      {
        $set: fields,
        ...(absent.length > 0 ? { $unset: Object.fromEntries(absent.map((name) => [name, true])) } : {}),
        $push: { history: toChangeDocument(change) },
      },
    )
    return updated ? 'updated' : 'conflict'
  }

  /** Runs in the background: if it fails, the next lookup records the use. */
  #recordUse({ keyId, oldSecret }: ApiKey, secretHash: string, lastUsedAt: Date): void {
    const recorded =
      secretHash === oldSecret?.hash
        ? this.#update({ _id: keyId, 'oldSecret.hash': secretHash }, { $set: { lastUsedAt, 'oldSecret.lastUsedAt': lastUsedAt } })
        : this.#update({ _id: keyId }, { $set: { lastUsedAt } })
    recorded.catch(() => undefined)
  }

  async #findOne(filter: Filter<ApiKeyDocument>): Promise<StoredApiKey | undefined> {
    const found = await this.mongo.call('apiKeys.find', () => this.#keys.findOne(filter, WITHOUT_HISTORY))
    return found ? toStoredKey(found) : undefined
  }

  /** Returns whether a document matched. */
  async #update(filter: Filter<ApiKeyDocument>, update: UpdateFilter<ApiKeyDocument>): Promise<boolean> {
    const options = { projection: { _id: 1 }, ...SERVER_TIME_LIMIT }
    return (await this.mongo.call('apiKeys.update', () => this.#keys.findOneAndUpdate(filter, update, options))) !== null
  }
}
