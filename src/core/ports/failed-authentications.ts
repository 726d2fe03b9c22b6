import type { AddressQuota } from '../address-quota.js'

/** Counts the failed authentications of each address, per minute of the clock. An outage is answered from this replica's own count. */
export interface FailedAuthentications {
  /** What the address has left; nothing is counted. */
  peek(address: string): Promise<AddressQuota>

  /** Counts a failure in one atomic step. Not admitted, and not counted, when nothing was left. */
  count(address: string): Promise<{ readonly admitted: boolean; readonly quota: AddressQuota }>
}
