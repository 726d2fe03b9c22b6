import type { AddressQuota } from '../address-quota.js'

/**
 * Counts the failed authentications of each IP address per minute, by this replica's clock. During an outage of the store, this replica's
 * own count decides. Once a method has returned 0 remaining, neither method calls the store for that IP address until the minute ends.
 */
export interface FailedAuthentications {
  /** What the address has left; nothing is counted. */
  peek(address: string): Promise<AddressQuota>

  /** Counts a failure in one atomic step. Not admitted, and not counted, when nothing was left. */
  count(address: string): Promise<{ readonly admitted: boolean; readonly quota: AddressQuota }>
}
