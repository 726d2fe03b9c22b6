import type { KeyObject } from 'node:crypto'
import { createHmac, createSecretKey, hkdfSync, timingSafeEqual } from 'node:crypto'

const ID_BYTES = 8
const SIGNATURE_BYTES = 16
/** 24 bytes in base64url, without padding. */
const CURSOR = /^[\w-]{32}$/

/** Creates and reads cursors: opaque strings that mark where the next page of a list begins. */
export interface Cursors {
  /** The cursor is valid only for the same `scope`, which names the list and its filter. 32 characters of base64url. */
  issue(scope: string, after: bigint): string
  /** Returns `undefined` if the cursor was not created by this service for this scope. */
  verify(scope: string, cursor: string): bigint | undefined
}

/**
 * A cursor is a signature and an ID. The signature is HMAC-SHA-256 of the scope and the ID, truncated to 128 bits. The first secret signs, and
 * all verify, so that a secret can be replaced while cursors that it signed are in use. All replicas need the same secrets.
 */
export function makeCursors([firstSecret, ...otherSecrets]: readonly [string, ...string[]]): Cursors {
  const signingKey = deriveKey(firstSecret)
  const keys = [signingKey, ...otherSecrets.map(deriveKey)]

  return {
    issue: (scope, after) => sign(signingKey, scope, after),

    verify(scope, cursor) {
      if (!CURSOR.test(cursor)) return undefined
      const after = Buffer.from(cursor, 'base64url').readBigInt64BE(SIGNATURE_BYTES)
      const isValid = keys.some((key) => timingSafeEqual(Buffer.from(sign(key, scope, after)), Buffer.from(cursor)))
      return isValid ? after : undefined
    },
  }
}

function deriveKey(secret: string): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', secret, '', 'petstore cursor signature', 32)))
}

function sign(key: KeyObject, scope: string, after: bigint): string {
  const id = Buffer.alloc(ID_BYTES)
  id.writeBigInt64BE(after)
  const signature = createHmac('sha256', key).update(scope).update(id).digest().subarray(0, SIGNATURE_BYTES)
  return Buffer.concat([signature, id]).toString('base64url')
}
