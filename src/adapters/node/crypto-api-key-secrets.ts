import { hash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { ApiKeySecret, ApiKeySecrets } from '../../core/ports/api-key-secrets.js'

const PREFIX = 'pst_live_'
const RANDOM_CHARACTERS = 30
const CHECKSUM_CHARACTERS = 6
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const FORMAT = new RegExp(`^${PREFIX}([0-9A-Za-z]{${RANDOM_CHARACTERS}})([0-9A-Za-z]{${CHECKSUM_CHARACTERS}})$`)

/**
 * The checksum detects mistyped secrets without a lookup. It is not a security feature. Secrets are never compared, only looked up by their
 * SHA-256 hash, so response times reveal nothing about them.
 */
export class CryptoApiKeySecrets implements ApiKeySecrets {
  generate(): ApiKeySecret {
    const random = generateBase62(RANDOM_CHARACTERS)
    const secret = PREFIX + random + computeChecksum(random)
    return { keyId: `key_${generateBase62(16)}`, secret, secretHash: computeSha256(secret), hint: `${PREFIX}…${secret.slice(-4)}` }
  }

  hash(secret: string): string | undefined {
    const [, random, checksum] = FORMAT.exec(secret) ?? []
    return random !== undefined && checksum === computeChecksum(random) ? computeSha256(secret) : undefined
  }
}

function generateBase62(length: number): string {
  return Array.from({ length }, () => BASE62[randomInt(BASE62.length)]).join('')
}

/** The CRC32 of the random part in Base62, most significant digit first. */
function computeChecksum(random: string): string {
  let rest = crc32(random)
  let digits = ''
  while (digits.length < CHECKSUM_CHARACTERS) {
    digits = BASE62[rest % BASE62.length] + digits
    rest = Math.floor(rest / BASE62.length)
  }
  return digits
}

function computeSha256(secret: string): string {
  return hash('sha256', secret)
}
