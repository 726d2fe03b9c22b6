import type { IssuedApiKey } from '../../core/use-cases/issue-api-key.js'
import type { Plans } from '../../core/plan.js'
import { quotaRulesFor } from '../../core/plan.js'

export interface Started {
  /** Where the API listens: `http://127.0.0.1:8080`. */
  readonly apiUrl: string
  readonly adminUrl: string
  readonly docs: boolean
  readonly plans: Plans
  readonly demoKeys: readonly IssuedApiKey[]
}

/** What the embedded service says at its start, to people. */
export function startUpNotice({ apiUrl, adminUrl, docs, plans, demoKeys }: Started): string {
  const keyLines = demoKeys.map(({ key, secret }) => {
    const { limits } = quotaRulesFor(key, plans)
    return `  ${key.plan.padEnd(10)}  ${secret}  ${limits.minute} a minute, ${limits.day} a day`
  })
  return [
    'Pet Store, embedded: all data lives in this process and ends with it.',
    '',
    `Listening on  ${apiUrl}/v1`,
    ...(docs ? [`Docs          ${apiUrl}/docs`] : []),
    `Admin         ${adminUrl}/metrics and ${adminUrl}/health`,
    '',
    'Demo keys, fresh at every start:',
    ...keyLines,
    '',
    `  curl -i -H 'Authorization: Bearer ${demoKeys[0]?.secret}' ${apiUrl}/v1/pets`,
    '',
    '',
  ].join('\n')
}
