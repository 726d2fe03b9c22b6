import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { SecureContextOptions } from 'node:tls'
import { createSecureContext } from 'node:tls'
import { SettingError } from '../../core/errors.js'

/** The options of REDIS_URL that concern TLS, named as in MongoDB's URL. */
export const TLS_OPTIONS = ['tlsCAFile', 'tlsCertificateKeyFile', 'tlsCertificateKeyFilePassword'] as const

export type TlsOptions = Readonly<Partial<Record<(typeof TLS_OPTIONS)[number], string>>>

/**
 * Reads the certificate authority's certificates, and the client's certificate and key, which share one PEM file. Throws
 * `SettingError`, which names the option and the file and repeats neither password nor content.
 */
export function readTls({ tlsCAFile, tlsCertificateKeyFile, tlsCertificateKeyFilePassword }: TlsOptions): SecureContextOptions {
  if (tlsCertificateKeyFilePassword !== undefined && tlsCertificateKeyFile === undefined)
    throw new SettingError('REDIS_URL cannot be used: tlsCertificateKeyFilePassword needs tlsCertificateKeyFile')
  return {
    ...(tlsCAFile === undefined ? {} : readAuthority(tlsCAFile)),
    ...(tlsCertificateKeyFile === undefined ? {} : readClientCertificate(tlsCertificateKeyFile, tlsCertificateKeyFilePassword)),
  }
}

function readAuthority(path: string): SecureContextOptions {
  const ca = readPem('tlsCAFile', path)
  // OpenSSL accepts an authority's file without a certificate, and trusts nobody then.
  rejectUnless(() => new X509Certificate(ca), `tlsCAFile ${path} does not hold a certificate`)
  return { ca }
}

function readClientCertificate(path: string, passphrase: string | undefined): SecureContextOptions {
  const pem = readPem('tlsCertificateKeyFile', path)
  const certificate = { cert: pem, key: pem, ...(passphrase === undefined ? {} : { passphrase }) }
  rejectUnless(() => createSecureContext(certificate), `tlsCertificateKeyFile ${path} does not hold a certificate and its private key`)
  return certificate
}

function readPem(option: string, path: string): string {
  return rejectUnless(() => readFileSync(path, 'utf8'), `cannot read ${option} ${path}`)
}

function rejectUnless<Value>(attempt: () => Value, what: string): Value {
  try {
    return attempt()
  } catch (error) {
    throw new SettingError(`REDIS_URL cannot be used: ${what} (${(error as NodeJS.ErrnoException).code})`, { cause: error })
  }
}
