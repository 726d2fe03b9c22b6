import type { ApiKey } from './api-key.js'
import type { PlanName } from './plan.js'
import type { QuotaUsage } from './quota.js'
import type { WindowName } from './window.js'
import { mapWindows } from './window.js'

export interface WindowReport {
  readonly limit: number
  /** Requests charged in the current window. */
  readonly used: number
  /** Requests left. 0 during a ban. */
  readonly remaining: number
  /** The end of the window: ISO 8601 in UTC. */
  readonly resetsAt: string
}

/** The usage of a key as `GET /v1/usage` and `petstore keys usage` report it. */
export interface KeyUsage extends Readonly<Record<WindowName, WindowReport>> {
  readonly plan: PlanName
  /** Null if the key is not banned. `endsAt`: ISO 8601 in UTC. */
  readonly ban: { readonly endsAt: string } | null
}

export function toKeyUsage({ plan }: Pick<ApiKey, 'plan'>, { windows, bannedUntilMs }: QuotaUsage): KeyUsage {
  const { minute, day } = mapWindows((name) => {
    const { limit, used, remaining, resetSeconds } = windows[name]
    return { limit, used, remaining, resetsAt: new Date(resetSeconds * 1000).toISOString() }
  })
  return { plan, minute, day, ban: bannedUntilMs === undefined ? null : { endsAt: new Date(bannedUntilMs).toISOString() } }
}
