import { expect } from 'chai'
import { MongoConnection } from '../../../src/adapters/mongo/mongo-connection.js'
import { StoreUnavailable } from '../../../src/core/errors.js'
import { rejection } from '../../contracts/rejection.js'
import { CertificateAuthority } from '../../support/certificate-authority.js'
import type { MongoOverTls } from '../../support/mongo-over-tls.js'
import { aMongoDatabaseOverTls } from '../../support/mongo-over-tls.js'

const KEY_PASSWORD = 'k+y p@ss%word'

describe('a connection to MongoDB over TLS', () => {
  let authority: CertificateAuthority
  let otherAuthority: CertificateAuthority
  let mongo: MongoOverTls
  let tlsOptions: Readonly<Record<string, string>>
  const opened: MongoConnection[] = []

  before(async function () {
    authority = await CertificateAuthority.create('Authority of the server')
    otherAuthority = await CertificateAuthority.create('Another authority')
    mongo = await aMongoDatabaseOverTls(this, { authority, certificate: await authority.issue({ names: ['localhost'] }) })
    const { certificateKeyFile } = await authority.issue({ names: ['petstore'] })
    tlsOptions = { tls: 'true', tlsCAFile: authority.caFile, tlsCertificateKeyFile: certificateKeyFile }
  })

  afterEach(() => Promise.all(opened.splice(0).map((connection) => connection.close())))

  after(async () => {
    await mongo?.drop()
    authority?.remove()
    otherAuthority?.remove()
  })

  function connectionTo(url: string): MongoConnection {
    const connection = new MongoConnection(url)
    opened.push(connection)
    return connection
  }

  async function reasonAt(url: string): Promise<string> {
    const connection = connectionTo(url)
    const error = await rejection(connection.open())
    expect(error).to.be.instanceOf(StoreUnavailable)
    expect(await connection.isUp()).to.equal(false)
    return String((error as StoreUnavailable).cause)
  }

  it('writes and reads with the certificate authority and the client certificate in the URL', async () => {
    const connection = connectionTo(mongo.url('localhost', tlsOptions))
    await connection.open()
    await connection.db.collection<{ _id: string }>('pets').insertOne({ _id: 'Rex' })
    expect(await connection.db.collection<{ _id: string }>('pets').findOne()).to.deep.equal({ _id: 'Rex' })
  })

  it('accepts a client certificate whose key is encrypted with the password in the URL', async () => {
    const { certificateKeyFile } = await authority.issue({ names: ['petstore'], keyPassword: KEY_PASSWORD })
    const options = { ...tlsOptions, tlsCertificateKeyFile: certificateKeyFile, tlsCertificateKeyFilePassword: KEY_PASSWORD }
    expect(await connectionTo(mongo.url('localhost', options)).isUp()).to.equal(true)
  })

  it('is not opened if the server’s certificate does not contain the host name, and the error contains the reason', async () => {
    expect(await reasonAt(mongo.url('127.0.0.1', tlsOptions))).to.match(/IP: 127\.0\.0\.1 is not in the cert's list/)
  })

  it('is not opened if another authority signed the server’s certificate, and the error contains the reason', async () => {
    const options = { ...tlsOptions, tlsCAFile: otherAuthority.caFile }
    expect(await reasonAt(mongo.url('localhost', options))).to.match(/unable to verify|unable to get local issuer|self-signed certificate/)
  })

  it('is not opened without a client certificate', async () => {
    await reasonAt(mongo.url('localhost', { tls: 'true', tlsCAFile: authority.caFile }))
  })
})
