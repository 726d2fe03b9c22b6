import type { WindowQuota } from '../quota.js'

/** What an address has left for this minute. `nowMs` is the clock that decided, Unix time in milliseconds. */
export interface AddressQuota extends WindowQuota {
  readonly nowMs: number
}

/** Counts the failed authentications of each address, per minute of the clock. An outage is answered from this replica's own count. */
export interface FailedAuthentications {
  /** What the address has left; nothing is counted. */
  peek(address: string): Promise<AddressQuota>

  /** Counts a failure in one atomic step. Not admitted, and not counted, when nothing was left. */
  count(address: string): Promise<{ readonly admitted: boolean; readonly quota: AddressQuota }>
}
