import { MongoApiKeyStore } from '../../src/adapters/mongo/mongo-api-key-store.js'
import { MongoConnection } from '../../src/adapters/mongo/mongo-connection.js'
import { CryptoApiKeySecrets } from '../../src/adapters/node/crypto-api-key-secrets.js'
import { SystemClock } from '../../src/adapters/node/system-clock.js'
import { readConfig } from '../../src/config.js'
import type { NewApiKey } from '../../src/core/use-cases/issue-api-key.js'
import { makeIssueApiKey } from '../../src/core/use-cases/issue-api-key.js'

export interface StoredKey {
  /** The secret. */
  readonly key: string
  readonly keyId: string
}

/** Issues keys on this MongoDB like `petstore keys issue`, but without a process for each. */
export async function issueStoredKeys(mongodbUrl: string, newKeys: readonly NewApiKey[]): Promise<StoredKey[]> {
  const connection = new MongoConnection(mongodbUrl)
  const clock = new SystemClock()
  try {
    const apiKeyStore = new MongoApiKeyStore(connection, clock)
    const issue = makeIssueApiKey({ apiKeyStore, secrets: new CryptoApiKeySecrets(), clock, plans: readConfig({}).plans })
    const issued = await Promise.all(newKeys.map((newKey) => issue(newKey, 'tests')))
    return issued.map(({ key, secret }) => ({ key: secret, keyId: key.keyId }))
  } finally {
    await connection.close()
  }
}
