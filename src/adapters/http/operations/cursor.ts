import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { parseInt64 } from '../../../core/int64.js'

const IV_BYTES = 12
const TAG_BYTES = 16
const VERSION = '1'

/** Where a listing goes on, as a text that nobody but the replicas can read or make. */
export interface Cursors {
  /** `filter` names the listing and its filter: the cursor works for no other. Base64url, under 200 characters. */
  seal(filter: string, after: bigint): string
  /** Absent when the text is not a cursor of this service, or one of another listing or filter. */
  open(filter: string, cursor: string): bigint | undefined
}

/** AES-256-GCM under a key derived from the secret: opaque and tamper-evident in one. All replicas must share the secret. */
export function makeCursors(secret: string): Cursors {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'petstore cursor', 32))

  return {
    seal(filter, after) {
      const iv = randomBytes(IV_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(VERSION + filter))
      const sealed = Buffer.concat([cipher.update(after.toString()), cipher.final()])
      return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url')
    },

    open(filter, cursor) {
      const bytes = Buffer.from(cursor, 'base64url')
      // Node's decoder passes over foreign characters and spare bits: only the one canonical spelling is a cursor.
      if (bytes.length <= IV_BYTES + TAG_BYTES || bytes.toString('base64url') !== cursor) return undefined
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES))
      decipher.setAAD(Buffer.from(VERSION + filter)).setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
      const opened = decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES))
      return isAuthentic(() => decipher.final()) ? parseInt64(opened.toString()) : undefined
    },
  }
}

/** Node reports a wrong authentication tag by throwing, and nothing else can throw there. */
function isAuthentic(final: () => void): boolean {
  try {
    final()
    return true
  } catch {
    return false
  }
}
