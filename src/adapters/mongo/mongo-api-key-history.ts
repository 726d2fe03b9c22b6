import type { ApiKeyChange } from '../../core/api-key-change.js'
import type { ApiKeyHistory, ApiKeyHistoryEntry, ApiKeyHistoryFilter } from '../../core/ports/api-key-history.js'
import type { ChangeDocument } from './api-key-document.js'
import { getApiKeyCollection, toChangeDocument } from './api-key-document.js'
import { SERVER_TIME_LIMIT } from './mongo-call.js'
import type { MongoConnection } from './mongo-connection.js'

/** One change of a key. */
interface Row {
  readonly _id: string
  readonly owner: string
  readonly history: ChangeDocument
}

/** The history of a key is an array in its document. */
export class MongoApiKeyHistory implements ApiKeyHistory {
  constructor(private readonly mongo: MongoConnection) {}

  async add(keyId: string, change: ApiKeyChange): Promise<void> {
    await this.mongo.call('apiKeys.update', () =>
      getApiKeyCollection(this.mongo.db).findOneAndUpdate(
        { _id: keyId },
        { $push: { history: toChangeDocument(change) } },
        { projection: { _id: 1 }, ...SERVER_TIME_LIMIT },
      ),
    )
  }

  async list({ keyId, owner, sinceMs, untilMs, limit }: ApiKeyHistoryFilter): Promise<readonly ApiKeyHistoryEntry[]> {
    const time = {
      ...(sinceMs === undefined ? {} : { $gte: new Date(sinceMs) }),
      ...(untilMs === undefined ? {} : { $lt: new Date(untilMs) }),
    }
    const pipeline = [
      { $match: { ...(keyId === undefined ? {} : { _id: keyId }), ...(owner === undefined ? {} : { owner }) } },
      { $project: { owner: 1, history: 1 } },
      { $unwind: { path: '$history', includeArrayIndex: 'index' } },
      { $match: Object.keys(time).length === 0 ? {} : { 'history.at': time } },
      { $sort: { 'history.at': -1, _id: -1, index: -1 } },
      ...(limit === undefined ? [] : [{ $limit: limit }]),
    ]
    const latestFirst = await this.mongo.call('apiKeys.find', () =>
      getApiKeyCollection(this.mongo.db).aggregate<Row>(pipeline, SERVER_TIME_LIMIT).toArray(),
    )
    return latestFirst.toReversed().map(({ _id, owner: ownerOfKey, history: { at, by, action, before, after } }) => {
      return { keyId: _id, owner: ownerOfKey, atMs: at.getTime(), by, action, before, after }
    })
  }
}
