import type { Cancellation } from '../cancellation.js'
import type { AddressQuota } from '../address-quota.js'
import { StoreUnavailable } from '../errors.js'
import type { ApiKeyVerifier, Caller, Verification } from '../ports/api-key-verifier.js'
import type { FailedAuthentications } from '../ports/failed-authentications.js'
import type { StaleKeyRecord } from '../ports/quota-store.js'
import type { KeyVersion } from '../quota.js'

export type Authentication =
  | Verification
  /** No key was sent. Nothing was guessed, so this does not count toward the failure limit. */
  | { readonly kind: 'missing'; readonly quota: AddressQuota }

export type FailedAuthentication = Exclude<Authentication, { readonly kind: 'verified' }>

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

/** A key may change while its record is read again. */
const MAX_ATTEMPTS = 5

/** Authenticates the caller, then runs `step` with the record of the key. If the record is stale, reads it again and repeats the step. */
export async function runWithCurrentRecord<Result extends { readonly kind: string }>(
  ports: { readonly authenticate: Authenticate; readonly apiKeyVerifier: ApiKeyVerifier },
  request: { readonly credentials: Credentials; readonly signal: Cancellation | undefined },
  step: (caller: Caller, keyVersion: KeyVersion) => Promise<Result | StaleKeyRecord>,
): Promise<Result | FailedAuthentication> {
  let readSince: number | undefined
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const authentication = await ports.authenticate(request.credentials, request.signal)
    if (authentication.kind !== 'verified') return authentication
    request.signal?.throwIfAborted()
    const { version } = authentication.key
    const result = await step(authentication, { version, ...(readSince === undefined ? {} : { readSince }) })
    if (!isStaleRecord(result)) return result
    // The record that is read next applies even if its version is lower: the key store may have been restored from a backup.
    readSince = result.knownVersion
    ports.apiKeyVerifier.forget(request.credentials.secret ?? '')
  }
  throw new StoreUnavailable(`The API key changed during each of ${MAX_ATTEMPTS} reads`)
}

function isStaleRecord(result: { readonly kind: string }): result is StaleKeyRecord {
  return result.kind === 'stale'
}
