import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { SecureContextOptions } from 'node:tls'
import { createSecureContext } from 'node:tls'
import { SettingError } from '../../core/errors.js'

/** The TLS options of REDIS_URL, which have the same names in MONGODB_URL. */
export const TLS_OPTIONS = ['tlsCAFile', 'tlsCertificateKeyFile', 'tlsCertificateKeyFilePassword'] as const

export type TlsOptions = Readonly<Partial<Record<(typeof TLS_OPTIONS)[number], string>>>

/**
 * Reads the certificates of the certificate authority, and the PEM file with the client certificate and its key. Throws `SettingError`,
 * which names the option and the file but never contains a password or the content of a file.
 */
export function readTls({ tlsCAFile, tlsCertificateKeyFile, tlsCertificateKeyFilePassword }: TlsOptions): SecureContextOptions {
  if (tlsCertificateKeyFilePassword !== undefined && tlsCertificateKeyFile === undefined)
    throw new SettingError('REDIS_URL cannot be used: tlsCertificateKeyFilePassword requires tlsCertificateKeyFile')
  return {
    ...(tlsCAFile === undefined ? {} : readCaCertificates(tlsCAFile)),
    ...(tlsCertificateKeyFile === undefined ? {} : readClientCertificate(tlsCertificateKeyFile, tlsCertificateKeyFilePassword)),
  }
}

function readCaCertificates(path: string): SecureContextOptions {
  const ca = readPem('tlsCAFile', path)
  // OpenSSL accepts a file that contains no certificate, but would then trust no server.
  rethrowAsSettingError(() => new X509Certificate(ca), `tlsCAFile ${path} does not contain a certificate`)
  return { ca }
}

function readClientCertificate(path: string, passphrase: string | undefined): SecureContextOptions {
  const pem = readPem('tlsCertificateKeyFile', path)
  const certificate = { cert: pem, key: pem, ...(passphrase === undefined ? {} : { passphrase }) }
  rethrowAsSettingError(
    () => createSecureContext(certificate),
    `tlsCertificateKeyFile ${path} does not contain a certificate and its private key, or the key cannot be decrypted`,
  )
  return certificate
}

function readPem(option: string, path: string): string {
  return rethrowAsSettingError(() => readFileSync(path, 'utf8'), `cannot read ${option} ${path}`)
}

function rethrowAsSettingError<Value>(attempt: () => Value, problem: string): Value {
  try {
    return attempt()
  } catch (error) {
    throw new SettingError(`REDIS_URL cannot be used: ${problem} (${(error as NodeJS.ErrnoException).code})`, { cause: error })
  }
}
