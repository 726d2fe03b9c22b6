import type { Cancellation } from '../cancellation.js'
import type { AddressQuota } from '../address-quota.js'
import type { ApiKeyVerifier, Verification } from '../ports/api-key-verifier.js'
import type { FailedAuthentications } from '../ports/failed-authentications.js'

export type Authentication =
  | Verification
  /** No key was sent. Nothing was guessed, so this does not count toward the failure limit. */
  | { readonly kind: 'missing'; readonly quota: AddressQuota }

export interface Credentials {
  /** As sent; absent if the request has none. */
  readonly secret?: string
  /** The IP address that failures count toward: an IPv4 address, or the /64 network of an IPv6 address. */
  readonly address: string
}

/** Once the signal is aborted, starts no lookup and throws the signal's reason. */
export type Authenticate = (credentials: Credentials, signal?: Cancellation) => Promise<Authentication>

export function makeAuthenticate(ports: { apiKeyVerifier: ApiKeyVerifier; failedAuthentications: FailedAuthentications }): Authenticate {
  const { apiKeyVerifier, failedAuthentications } = ports

  return async ({ secret, address }, signal) => {
    if (secret === undefined) return { kind: 'missing', quota: await failedAuthentications.peek(address) }
    return apiKeyVerifier.verify(secret, address, signal)
  }
}
