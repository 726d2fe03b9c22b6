import type { Cancellation } from '../cancellation.js'
import type { AddressQuota } from '../address-quota.js'
import type { ApiKey } from '../api-key.js'

/** The owner of a verified API key. */
export interface Caller {
  readonly key: ApiKey
  /** The end of the grace period, if the secret is the old one of a rotated key. */
  readonly secretExpiresAtMs?: number
}

export type Verification =
  | (Caller & { readonly kind: 'verified' })
  /** The key is malformed, unknown, expired or revoked. The response must not reveal which. One failure was counted for the IP address. */
  | { readonly kind: 'invalid'; readonly quota: AddressQuota }
  /** The IP address has reached its failure limit, and the key is invalid or new to this replica. */
  | { readonly kind: 'locked-out'; readonly quota: AddressQuota }

/**
 * Verifies API keys and limits guessing.
 *
 * Each replica caches key records, and the absence of a key, for at most 10 s. Malformed keys and cached records cost no lookup. Concurrent
 * lookups of the same secret share one query.
 *
 * An IP address gets at most as many `invalid` results per minute as its failure limit. When it reaches the limit, this replica
 * looks up no more keys for it until the minute ends, except those that it has found before. At most four lookups per IP address are in
 * flight on a replica, so with a limit of N, invalid keys cause at most N + 3 lookups per minute and replica.
 */
export interface ApiKeyVerifier {
  /**
   * `address`: the IP address that failures count toward, as in `FailedAuthentications`. Throws `StoreUnavailable` if the lookup, or a
   * lookup that it waits for, fails. Such an error is not cached and does not count as a failure.
   *
   * Once `signal` is aborted, starts no lookup and throws the signal's reason. A lookup in flight continues, because others may wait for it.
   */
  verify(secret: string, address: string, signal?: Cancellation): Promise<Verification>

  /** Drops the record that is cached for the secret, so that the next verification reads it again. The key still counts as found before. */
  forget(secret: string): void
}
