import type { TestApi, TestApiOptions } from './api.js'
import { startApi } from './api.js'

/** The service for the length of `use`, with a key on it that no test uses up; stopped whatever happens. */
export async function withApi(options: TestApiOptions, use: (api: TestApi, key: string) => Promise<void>): Promise<void> {
  const api = await startApi(options)
  try {
    await use(api, await issueAmpleKey(api))
  } finally {
    await api.stop()
  }
}

/** The secret of a key with more requests than any test sends. */
export async function issueAmpleKey(api: TestApi): Promise<string> {
  const { secret } = await api.issueKey('enterprise', { limits: { minute: 100_000, day: 1_000_000 } })
  return secret
}
