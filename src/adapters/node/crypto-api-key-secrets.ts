import { createHash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { ApiKeySecret, ApiKeySecrets } from '../../core/ports/api-key-secrets.js'

const PREFIX = 'pst_live_'
const RANDOM_CHARACTERS = 30
const CHECKSUM_CHARACTERS = 6
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const SHAPE = new RegExp(`^${PREFIX}([0-9A-Za-z]{${RANDOM_CHARACTERS}})([0-9A-Za-z]{${CHECKSUM_CHARACTERS}})$`)

/**
 * The secret's checksum tells a mistyped key from a possible one without a look-up; it is no secret and no protection.
 * Nothing here compares secrets: they are found by their SHA-256, so the time that a look-up takes says nothing about them.
 */
export class CryptoApiKeySecrets implements ApiKeySecrets {
  generate(): ApiKeySecret {
    const random = randomBase62(RANDOM_CHARACTERS)
    const secret = PREFIX + random + checksum(random)
    return { keyId: `key_${randomBase62(16)}`, secret, secretHash: sha256(secret), hint: `${PREFIX}…${secret.slice(-4)}` }
  }

  hash(secret: string): string | undefined {
    const [, random, sum] = SHAPE.exec(secret) ?? []
    return random !== undefined && sum === checksum(random) ? sha256(secret) : undefined
  }
}

function randomBase62(length: number): string {
  return Array.from({ length }, () => BASE62[randomInt(BASE62.length)]).join('')
}

/** CRC32 of the random part as Base62, most significant digit first. */
function checksum(random: string): string {
  let rest = crc32(random)
  let digits = ''
  while (digits.length < CHECKSUM_CHARACTERS) {
    digits = BASE62[rest % BASE62.length] + digits
    rest = Math.floor(rest / BASE62.length)
  }
  return digits
}

function sha256(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}
