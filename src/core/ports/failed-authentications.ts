import type { AddressQuota } from '../address-quota.js'

/**
 * Counts failed authentications per IP address and minute. Minutes follow the clock of this replica. While a shared store is unavailable,
 * this replica uses its own count. Once a method has returned 0 remaining for an IP address, no method calls the store for it until the
 * minute ends.
 *
 * `address`: an IPv4 address, or the /64 network of an IPv6 address.
 */
export interface FailedAuthentications {
  /** Returns the quota without counting a failure. */
  peek(address: string): Promise<AddressQuota>

  /** Counts one failure, atomically over all replicas. `admitted` is false, and nothing is counted, if the limit was already reached. */
  count(address: string): Promise<{ readonly admitted: boolean; readonly quota: AddressQuota }>
}
