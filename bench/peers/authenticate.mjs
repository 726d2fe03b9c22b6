import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import { options } from './options.mjs'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const BEARER = /^Bearer (pst_live_([0-9A-Za-z]{30})([0-9A-Za-z]{6}))$/

/** With the same size and lifetime as the cache of the service. */
const cache = new LRUCache({ max: 10_000, ttl: 8_000 })

const configuredKeys = new Map(options.keys?.map(({ key, keyId, limits }) => [hash(key), { keyId, limits }]))

/**
 * Does the same work as the service: checks the checksum, computes the SHA-256 hash and looks it up in a cache. Resolves to the
 * API key, or to `undefined` if the secret is not valid. `apiKeys` is the collection in MongoDB.
 */
export async function authenticate(authorization, apiKeys) {
  const [, secret, random, checksum] = BEARER.exec(authorization ?? '') ?? []
  if (secret === undefined || computeChecksum(random) !== checksum) return undefined
  const secretHash = hash(secret)
  return cache.get(secretHash) ?? lookUp(secretHash, apiKeys)
}

async function lookUp(secretHash, apiKeys) {
  const found = apiKeys ? await apiKeys.findOne({ secretHash }) : configuredKeys.get(secretHash)
  if (!found) return undefined
  const key = { keyId: found._id ?? found.keyId, limits: found.limits }
  cache.set(secretHash, key)
  return key
}

function hash(secret) {
  return createHash('sha256').update(secret).digest('hex')
}

function computeChecksum(random) {
  let rest = crc32(random)
  let digits = ''
  while (digits.length < 6) {
    digits = BASE62[rest % 62] + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}
