import type { Plans } from '../../core/plan.js'
import { toQuotaRules } from '../../core/plan.js'
import type { IssuedApiKey } from '../../core/use-cases/issue-api-key.js'

export interface StartUpDetails {
  /** For example `http://127.0.0.1:8080`. */
  readonly apiUrl: string
  readonly adminUrl: string
  readonly hasDocs: boolean
  readonly plans: Plans
  /** Empty unless all data lives in this process. */
  readonly demoKeys: readonly IssuedApiKey[]
}

/** Formats the human-readable text that the service prints when it has started. */
export function formatStartUpNotice({ apiUrl, adminUrl, hasDocs, plans, demoKeys }: StartUpDetails): string {
  const isEmbedded = demoKeys.length > 0
  return [
    isEmbedded
      ? 'Pet Store, embedded mode: all data lives in this process and is lost when it stops.'
      : 'Pet Store, distributed mode: pets, orders and API keys live in MongoDB and quotas in Redis, shared by all replicas.',
    '',
    `Listening on  ${apiUrl}/v1`,
    ...(hasDocs ? [`Docs          ${apiUrl}/docs`] : []),
    `Admin         ${adminUrl}/metrics and ${adminUrl}/health`,
    '',
    ...(isEmbedded ? formatDemoKeys(demoKeys, plans) : ['Issue an API key:  petstore keys issue --plan free --owner <name>']),
    '',
    `  curl -i -H 'Authorization: Bearer ${demoKeys[0]?.secret ?? '<API key>'}' ${apiUrl}/v1/pets`,
    '',
    '',
  ].join('\n')
}

function formatDemoKeys(demoKeys: readonly IssuedApiKey[], plans: Plans): string[] {
  const lines = demoKeys.map(({ key, secret }) => {
    const { limits } = toQuotaRules(key, plans)
    return `  ${key.plan.padEnd(10)}  ${secret}  ${limits.minute} per minute, ${limits.day} per day`
  })
  return ['Demo keys, generated at every start:', ...lines]
}
