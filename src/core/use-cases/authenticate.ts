import type { ApiKey } from '../api-key.js'
import { isUsable } from '../api-key.js'
import type { ApiKeyLookup } from '../ports/api-key-lookup.js'
import type { ApiKeySecrets } from '../ports/api-key-secrets.js'
import type { Clock } from '../ports/clock.js'
import type { AddressQuota } from '../address-quota.js'
import type { FailedAuthentications } from '../ports/failed-authentications.js'
import { Turns } from '../turns.js'

export type Authentication =
  | { readonly kind: 'verified'; readonly key: ApiKey }
  /** No key was sent. It does not count toward the failure limit, because nothing was guessed. */
  | { readonly kind: 'missing'; readonly quota: AddressQuota }
  /** The key is malformed, unknown, expired or revoked. The response must not reveal which. */
  | { readonly kind: 'invalid'; readonly quota: AddressQuota }
  /** The key is invalid or unverified, and the IP address has reached its failure limit. There was no lookup. */
  | { readonly kind: 'locked-out'; readonly quota: AddressQuota }

export interface Credentials {
  /** As sent; absent when none was. */
  readonly secret?: string
  /** Whom to charge with a failure: an IPv4 address, or the /64 network of an IPv6 one. */
  readonly address: string
}

export type Authenticate = (credentials: Credentials) => Promise<Authentication>

export function makeAuthenticate(ports: {
  secrets: ApiKeySecrets
  apiKeys: ApiKeyLookup
  failedAuthentications: FailedAuthentications
  clock: Clock
}): Authenticate {
  const { secrets, apiKeys, failedAuthentications, clock } = ports
  const turns = new Turns()

  return async ({ secret, address }) => {
    if (secret === undefined) return { kind: 'missing', quota: await failedAuthentications.peek(address) }
    const secretHash = secrets.hash(secret)
    if (secretHash === undefined) return fail(address)

    return recalled(secretHash) ?? lookUpInTurn(secretHash, address)
  }

  /**
   * Of an address no more keys are looked up at a time than it may still fail: guessing many at once gains nothing. The others wait, and an outage that ends a look-up ends their waiting. A key that this replica has found
   * before works on behind an address that somebody else has used up.
   */
  async function lookUpInTurn(secretHash: string, address: string): Promise<Authentication> {
    let woken = false
    while (!apiKeys.hasFound(secretHash)) {
      const authentication = await turns.readSettled(
        address,
        () => peekOrPass(address),
        async (quota) => {
          const room = quota.remaining - turns.underWay(address)
          if (room > 1 || quota.remaining === 0) turns.pass(address)
          if (quota.remaining === 0) return { kind: 'locked-out', quota } as const
          return room > 0 ? turns.take(address, () => lookUp(secretHash, address)) : turns.wait(address)
        },
      )
      if (authentication) return authentication
      woken = true
    }
    if (woken) turns.pass(address)
    return recalled(secretHash) ?? lookUp(secretHash, address)
  }

  /** A request that was woken and fails here must not leave the others asleep. */
  async function peekOrPass(address: string): Promise<AddressQuota> {
    return failedAuthentications.peek(address).catch((error: unknown) => {
      turns.pass(address)
      throw error
    })
  }

  function recalled(secretHash: string): Authentication | undefined {
    const key = apiKeys.recall(secretHash)
    return key && isUsable(key, clock.nowMs()) ? { kind: 'verified', key } : undefined
  }

  async function lookUp(secretHash: string, address: string): Promise<Authentication> {
    const key = await apiKeys.find(secretHash)
    return key && isUsable(key, clock.nowMs()) ? { kind: 'verified', key } : fail(address)
  }

  async function fail(address: string): Promise<Authentication> {
    const { admitted, quota } = await failedAuthentications.count(address)
    return { kind: admitted ? 'invalid' : 'locked-out', quota }
  }
}
