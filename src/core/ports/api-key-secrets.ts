export interface ApiKeySecret {
  /** `key_` and 16 Base62 characters. */
  readonly keyId: string
  /** `pst_live_`, 30 random Base62 characters, and their CRC32 as 6 Base62 characters. */
  readonly secret: string
  /** SHA-256 of the secret, in lower-case hexadecimal. */
  readonly secretHash: string
  /** The prefix and the last four characters. */
  readonly hint: string
}

export interface ApiKeySecrets {
  /** Generates a secret with about 178 bits from a cryptographically secure random source. */
  generate(): ApiKeySecret

  /** Returns the hash for the lookup of a secret, or `undefined` if its format or checksum is wrong. No I/O. */
  hash(secret: string): string | undefined
}
