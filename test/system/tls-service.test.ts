import { expect } from 'chai'
import { CertificateAuthority } from '../support/certificate-authority.js'
import type { MongoOverTls } from '../support/mongo-over-tls.js'
import { aMongoDatabaseOverTls } from '../support/mongo-over-tls.js'
import type { Settings } from '../support/process.js'
import { postPet } from '../support/pet-writers.js'
import { endProcesses, issueKey, runPetstore, runPetstoreJson, startService } from '../support/process.js'
import type { TlsRedis } from '../support/redis-tls-servers.js'
import { aTlsRedis } from '../support/redis-tls-servers.js'
import { sharedSettings } from '../support/replicas.js'
import { until } from '../support/until.js'

describe('the service on MongoDB and Redis over TLS', function () {
  this.timeout(30_000)
  let authority: CertificateAuthority
  let mongo: MongoOverTls
  let redis: TlsRedis
  let tlsOptions: Readonly<Record<string, string>>

  before(async function () {
    authority = await CertificateAuthority.create('Authority of the servers')
    const server = { authority, certificate: await authority.issue({ names: ['localhost'] }) }
    mongo = await aMongoDatabaseOverTls(this, server)
    redis = await aTlsRedis(this, server)
    const { certificateKeyFile } = await authority.issue({ names: ['petstore'] })
    tlsOptions = { tlsCAFile: authority.caFile, tlsCertificateKeyFile: certificateKeyFile }
  })

  afterEach(endProcesses)

  after(async () => {
    await redis?.stop()
    await mongo?.drop()
    authority?.remove()
  })

  function settingsFor(redisHost: string): Settings {
    const redisUrl = `rediss://${redisHost}:${redis.port}?${new URLSearchParams(tlsOptions)}`
    return sharedSettings({ url: mongo.url('localhost', { tls: 'true', ...tlsOptions }) }, redisUrl)
  }

  it('creates pets and decides quotas, and the commands read the same data', async () => {
    const settings = settingsFor('localhost')
    const service = await startService(settings)
    const { key, keyId } = await issueKey(settings)
    expect(await postPet(service, key, 'Rex')).to.have.property('status', 201)
    const usage = await runPetstoreJson<{ day: { used: number } }>(['keys', 'usage', keyId], settings)
    expect(usage.day.used).to.equal(1)
    expect(await service.stop()).to.equal(0)
  })

  it('logs why it does not use a Redis whose certificate contains a different name, and serves requests', async () => {
    const settings = settingsFor('127.0.0.1')
    const service = await startService(settings)
    await until('the log has the reason', () => service.logLines.some((line) => line.includes(`IP: 127.0.0.1 is not in the cert's list`)))
    const { key } = await issueKey(settings)
    expect(await service.send('/v1/pets', { key })).to.have.property('status', 200)
  })

  for (const [name, urlWith] of [
    ['MONGODB_URL', (file: string) => ({ MONGODB_URL: mongo.url('localhost', { tls: 'true', tlsCAFile: file }) })],
    ['REDIS_URL', (file: string) => ({ REDIS_URL: `rediss://localhost:${redis.port}?tlsCAFile=${file}` })],
  ] as const) {
    it(`does not start if the tlsCAFile of ${name} cannot be read, and the error names the file`, async () => {
      const { exitCode, stderr } = await runPetstore(['serve'], {
        PORT: '0',
        ADMIN_PORT: '0',
        ...settingsFor('localhost'),
        ...urlWith('/no/ca.pem'),
      })
      expect(stderr).to.equal(`${name} cannot be used: cannot read tlsCAFile /no/ca.pem (ENOENT)\n`)
      expect(exitCode).to.equal(2)
    })
  }
})
