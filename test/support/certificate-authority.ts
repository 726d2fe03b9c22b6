import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SelfsignedOptions } from 'selfsigned'
import { generate } from 'selfsigned'
import { cleanUpAtEnd } from './engines/cleanup.js'

/** The paths of PEM files. */
export interface IssuedCertificate {
  readonly certificateFile: string
  readonly keyFile: string
  /** Certificate and key in one file, as clients require them. */
  readonly certificateKeyFile: string
}

export interface CertificateRequest {
  /** Host names and IP addresses. */
  readonly names: readonly string[]
  /** Encrypts the key. */
  readonly keyPassword?: string
}

/** Creates certificates for servers and clients. `remove` deletes its files, which are also deleted at the end of the test run. */
export class CertificateAuthority {
  readonly caFile: string
  readonly remove = cleanUpAtEnd(() => rmSync(this.folder, { recursive: true, force: true }))
  #issued = 0

  private constructor(
    readonly folder: string,
    private readonly ca: { readonly key: string; readonly cert: string },
  ) {
    this.caFile = this.write('ca.pem', ca.cert)
  }

  static async create(name: string): Promise<CertificateAuthority> {
    const { private: key, cert } = await generate([{ name: 'commonName', value: name }], {
      ...KEY_TYPE,
      extensions: [
        { name: 'basicConstraints', cA: true, critical: true },
        { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
      ],
    })
    const folder = mkdtempSync(join(tmpdir(), 'petstore-certificates-'))
    return new CertificateAuthority(folder, { key, cert })
  }

  /** A certificate for servers, for clients, and for servers that connect to each other. */
  async issue({ names, keyPassword }: CertificateRequest): Promise<IssuedCertificate> {
    const { private: key, cert } = await generate([{ name: 'commonName', value: names[0] ?? 'unnamed' }], {
      ...KEY_TYPE,
      ca: this.ca,
      ...(keyPassword === undefined ? {} : { passphrase: keyPassword }),
      extensions: [
        { name: 'keyUsage', digitalSignature: true, critical: true },
        { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
        { name: 'subjectAltName', altNames: names.map((name) => (isIP(name) ? { type: 7, ip: name } : { type: 2, value: name })) },
      ],
    })
    this.#issued += 1
    mkdirSync(join(this.folder, `${this.#issued}`))
    return {
      certificateFile: this.write(`${this.#issued}/certificate.pem`, cert),
      keyFile: this.write(`${this.#issued}/key.pem`, key),
      certificateKeyFile: this.write(`${this.#issued}/certificate-and-key.pem`, `${cert}\n${key}`),
    }
  }

  private write(name: string, pem: string): string {
    const path = join(this.folder, name)
    writeFileSync(path, pem, { mode: 0o600 })
    return path
  }
}

/** Much faster to generate than an RSA key. */
const KEY_TYPE = { keyType: 'ec', algorithm: 'sha256' } satisfies SelfsignedOptions

/** Options of a server with TLS, which requires client certificates of the same authority. */
export interface TlsServerOptions {
  readonly authority: CertificateAuthority
  /** Contains the names under which clients can verify the server. */
  readonly certificate: IssuedCertificate
}
