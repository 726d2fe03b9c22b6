export interface ApiKeySecret {
  /** `key_` and 16 Base62 characters. */
  readonly keyId: string
  /** `pst_live_`, 30 random Base62 characters and 6 of their CRC32. */
  readonly secret: string
  /** SHA-256 of the secret, in lower-case hexadecimal. */
  readonly secretHash: string
  /** The prefix and the last four characters. */
  readonly hint: string
}

export interface ApiKeySecrets {
  /** Makes a new secret from a cryptographic source of randomness, about 178 bits. */
  generate(): ApiKeySecret

  /** The hash to look a secret up by; `undefined` when its shape or checksum is wrong. No I/O. */
  hash(secret: string): string | undefined
}
