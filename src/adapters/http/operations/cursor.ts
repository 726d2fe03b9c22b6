import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { parseInt64 } from '../../../core/int64.js'

const IV_BYTES = 12
const TAG_BYTES = 16
const VERSION = '1'

/** Creates and reads cursors: opaque strings that mark where the next page of a list begins. */
export interface Cursors {
  /** The cursor is valid only for the same `scope`, which names the list and its filter. Base64url, fewer than 200 characters. */
  seal(scope: string, after: bigint): string
  /** Returns `undefined` if the cursor was not created by this service for this scope. */
  open(scope: string, cursor: string): bigint | undefined
}

/** Uses AES-256-GCM, which makes cursors opaque and tamper-proof. All replicas need the same secret. */
export function makeCursors(secret: string): Cursors {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'petstore cursor', 32))

  return {
    seal(scope, after) {
      const iv = randomBytes(IV_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(VERSION + scope))
      const sealed = Buffer.concat([cipher.update(after.toString()), cipher.final()])
      return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url')
    },

    open(scope, cursor) {
      const bytes = Buffer.from(cursor, 'base64url')
      // Node's decoder ignores invalid characters and unused bits, so several strings decode to the same bytes. Only one of them is valid.
      if (bytes.length <= IV_BYTES + TAG_BYTES || bytes.toString('base64url') !== cursor) return undefined
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES))
      decipher.setAAD(Buffer.from(VERSION + scope)).setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
      const opened = decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES))
      try {
        decipher.final()
      } catch {
        // Node throws if the authentication tag is wrong, and for no other reason here.
        return undefined
      }
      return parseInt64(opened.toString())
    },
  }
}
