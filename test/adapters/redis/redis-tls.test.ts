import { expect } from 'chai'
import { someQuotaRules } from '../../support/builders.js'
import { rejection } from '../../contracts/rejection.js'
import type { IssuedCertificate, TlsServerOptions } from '../../support/certificate-authority.js'
import { CertificateAuthority } from '../../support/certificate-authority.js'
import type { RedisReplica } from '../../support/redis-replica.js'
import { aRedisConnection, aRedisReplica, CLUSTER_KEYS, KEYS, untilUp } from '../../support/redis-replica.js'
import type { TlsRedis } from '../../support/redis-tls-servers.js'
import { aTlsRedis, aTlsRedisCluster, aTlsSentinel } from '../../support/redis-tls-servers.js'
import { takeOne } from '../../support/take-one.js'
import { until } from '../../support/until.js'
import { countAdmitted, inParallel } from '../../support/verdicts.js'

const FREE = someQuotaRules()
const KEY_PASSWORD = 'k+y p@ss%word'

describe('Redis over TLS', function () {
  this.timeout(60_000)
  let authority: CertificateAuthority
  let otherAuthority: CertificateAuthority
  /** The certificate contains localhost only. */
  let server: TlsServerOptions
  let client: IssuedCertificate
  let tlsOptions: { readonly tlsCAFile: string; readonly tlsCertificateKeyFile: string }
  const replicas: RedisReplica[] = []

  before(async () => {
    authority = await CertificateAuthority.create('Authority of the servers')
    otherAuthority = await CertificateAuthority.create('Another authority')
    server = { authority, certificate: await authority.issue({ names: ['localhost'] }) }
    client = await authority.issue({ names: ['petstore'] })
    tlsOptions = { tlsCAFile: authority.caFile, tlsCertificateKeyFile: client.certificateKeyFile }
  })

  afterEach(() => Promise.all(replicas.splice(0).map((replica) => replica.close())))

  after(() => {
    authority?.remove()
    otherAuthority?.remove()
  })

  /** Two replicas, both connected. */
  async function twoReplicas(url: string): Promise<[RedisReplica, RedisReplica]> {
    const both = await Promise.all([aRedisReplica(url, { hasNoTimeout: true }), aRedisReplica(url, { hasNoTimeout: true })])
    replicas.push(...both)
    await Promise.all(both.map((replica) => untilUp(replica)))
    return both
  }

  /** Returns the logged reason why Redis is unavailable. */
  async function reasonAt(url: string): Promise<string | undefined> {
    const connection = aRedisConnection(url)
    const changes: { isUp: boolean; reason: string | undefined }[] = []
    connection.breaker.onChange((isUp, reason) => changes.push({ isUp, reason }))
    await connection.connect()
    await connection.close()
    expect(changes).to.have.length(1)
    expect(changes[0]?.isUp).to.equal(false)
    return changes[0]?.reason
  }

  /** Retries, because the reason from the server is lost if the client is still writing when the server closes the connection. */
  async function untilRejected(url: string, reason: string): Promise<void> {
    const { breaker, client: redis } = aRedisConnection(url)
    const changes: boolean[] = []
    breaker.onChange((isUp) => changes.push(isUp))
    await breaker.connect(1_500)
    const isKnown = async () => String(await rejection(breaker.call(() => redis.ping(), 0))).includes(reason)
    try {
      await until(`the reason is known: ${reason}`, isKnown, 30_000)
    } finally {
      await breaker.close()
    }
    expect(changes).to.deep.equal([false])
  }

  /** Tests that one server, a cluster and Sentinel share. `makeUrl` returns the URL of the running server with this host. */
  function describeVerification(makeUrl: (host: string, options: Readonly<Record<string, string>>) => string): void {
    const guarantees: Readonly<Record<string, () => Promise<void>>> = {
      async 'is not used under a name that its certificate does not contain, and the log has the reason'() {
        expect(await reasonAt(makeUrl('127.0.0.1', tlsOptions))).to.match(/IP: 127\.0\.0\.1 is not in the cert's list/)
      },
      async 'is not used if another authority signed its certificate, and the log has the reason'() {
        const options = { ...tlsOptions, tlsCAFile: otherAuthority.caFile }
        expect(await reasonAt(makeUrl('localhost', options))).to.match(/self-signed certificate in certificate chain/)
      },
      async 'is not used if no setting names the authority that signed its certificate, and the log has the reason'() {
        const { tlsCertificateKeyFile } = tlsOptions
        expect(await reasonAt(makeUrl('localhost', { tlsCertificateKeyFile }))).to.match(/self-signed certificate in certificate chain/)
      },
      async 'rejects a client without a certificate, and the client reports the reason'() {
        await untilRejected(makeUrl('localhost', { tlsCAFile: authority.caFile }), 'certificate required')
      },
      async 'rejects a client whose certificate another authority signed, and the client reports the reason'() {
        const { certificateKeyFile } = await otherAuthority.issue({ names: ['petstore'] })
        await untilRejected(makeUrl('localhost', { ...tlsOptions, tlsCertificateKeyFile: certificateKeyFile }), 'unknown ca')
      },
    }
    let outcomes: readonly PromiseSettledResult<void>[] = []

    // Connect concurrently, because each attempt takes as long as the service waits for Redis when it starts.
    before(async () => {
      outcomes = await Promise.allSettled(Object.values(guarantees).map((hold) => hold()))
    })

    for (const [index, guarantee] of Object.keys(guarantees).entries()) {
      it(guarantee, () => {
        const outcome = outcomes[index]
        if (outcome?.status !== 'fulfilled') throw outcome?.reason ?? new Error('This connection was not attempted')
      })
    }
  }

  describe('on one server', () => {
    let redis: TlsRedis
    const makeUrl = (host: string, options: Readonly<Record<string, string>>) => `rediss://${host}:${redis.port}${toQuery(options)}`

    before(async function () {
      redis = await aTlsRedis(this, server)
    })

    after(() => redis?.stop())

    it('admits exactly the limit across two replicas', async () => {
      const [one, other] = await twoReplicas(makeUrl('localhost', tlsOptions))
      const verdicts = await inParallel(80, (index) => takeOne((index % 2 ? one : other).quotas, 'key_one', FREE))
      expect(countAdmitted(verdicts)).to.equal(60)
    })

    it('accepts a client certificate whose key is encrypted with the password in the URL', async () => {
      const { certificateKeyFile } = await authority.issue({ names: ['petstore'], keyPassword: KEY_PASSWORD })
      const options = { ...tlsOptions, tlsCertificateKeyFile: certificateKeyFile, tlsCertificateKeyFilePassword: KEY_PASSWORD }
      const [one] = await twoReplicas(makeUrl('localhost', options))
      expect(await takeOne(one.quotas, 'key_two', FREE)).to.have.property('kind', 'admitted')
    })

    describeVerification(makeUrl)
  })

  describe('on a cluster whose nodes announce host names', () => {
    let nodes: readonly TlsRedis[]
    const makeUrl = (host: string, options: Readonly<Record<string, string>>) =>
      `rediss+cluster://${nodes.map(({ port }) => `${host}:${port}`).join(',')}${toQuery(options)}`

    before(async function () {
      nodes = await aTlsRedisCluster(this, server)
    })

    after(() => Promise.all((nodes ?? []).map((node) => node.stop())))

    it('admits exactly the limit across two replicas for keys on all nodes', async () => {
      const [one, other] = await twoReplicas(makeUrl('localhost', tlsOptions))
      const admitted = await inParallel(15, async (key) => {
        const both = await inParallel(80, (index) => takeOne((index % 2 ? one : other).quotas, `key_${key}`, FREE))
        return countAdmitted(both)
      })
      expect(new Set(admitted)).to.deep.equal(new Set([60]))
      for (const node of nodes) {
        const observer = node.connect()
        const hashes = await inParallel(15, (key) => observer.exists(CLUSTER_KEYS.quota(`key_${key}`)).catch(() => 0))
        observer.disconnect()
        expect(hashes.filter((exists) => exists === 1).length).to.be.above(0)
      }
    })

    it('discovers the other nodes from the one in the URL', async () => {
      const [first] = nodes
      const [one] = await twoReplicas(`rediss+cluster://localhost:${first?.port}${toQuery(tlsOptions)}`)
      const verdicts = await inParallel(30, (index) => takeOne(one.quotas, `key_of_one_${index}`, FREE))
      expect(countAdmitted(verdicts)).to.equal(30)
    })

    describeVerification(makeUrl)
  })

  describe('behind a Sentinel with a password', () => {
    const PRIMARY_PASSWORD = 'primary-password'
    const SENTINEL_PASSWORDS = { default: 's+ntinel p@ss%word', petstore: 'password-of-the-user' }
    let primary: TlsRedis
    let replica: TlsRedis
    let sentinel: TlsRedis

    before(async function () {
      const args = ['--requirepass', PRIMARY_PASSWORD, '--masterauth', PRIMARY_PASSWORD, '--replica-announce-ip', 'localhost']
      primary = await aTlsRedis(this, server, args)
      replica = await aTlsRedis(this, server, [...args, '--replicaof', 'localhost', `${primary.port}`])
      sentinel = await aTlsSentinel(this, server, {
        primary,
        name: 'petstore',
        primaryPassword: PRIMARY_PASSWORD,
        sentinelPasswords: SENTINEL_PASSWORDS,
      })
    })

    after(() => Promise.all([primary, replica, sentinel].map((each) => each?.stop())))

    const sentinelUrl = (options: Readonly<Record<string, string>>, host = 'localhost') =>
      `rediss+sentinel://:${PRIMARY_PASSWORD}@${host}:${sentinel.port}/petstore${toQuery(options)}`
    const withPassword = (sentinelPassword = SENTINEL_PASSWORDS.default) => ({ ...tlsOptions, sentinelPassword })

    it('admits exactly the limit across two replicas', async () => {
      const [one, other] = await twoReplicas(sentinelUrl(withPassword()))
      const verdicts = await inParallel(80, (index) => takeOne((index % 2 ? one : other).quotas, 'key_one', FREE))
      expect(countAdmitted(verdicts)).to.equal(60)
    })

    it('authenticates as a user of the Sentinel', async () => {
      const [one] = await twoReplicas(sentinelUrl({ ...withPassword(SENTINEL_PASSWORDS.petstore), sentinelUsername: 'petstore' }))
      expect(await takeOne(one.quotas, 'key_two', FREE)).to.have.property('kind', 'admitted')
    })

    for (const [what, sentinelOptions, reason] of [
      ['without a password', {}, /NOAUTH/],
      ['with a wrong password', { sentinelPassword: 'wrong' }, /WRONGPASS/],
      ['with a wrong user', { sentinelUsername: 'nobody', sentinelPassword: 'password-of-the-user' }, /WRONGPASS/],
    ] as const) {
      it(`rejects a client ${what}, and the log contains the reason`, async () => {
        expect(await reasonAt(sentinelUrl({ ...tlsOptions, ...sentinelOptions }))).to.match(reason)
      })
    }

    describeVerification((host, options) => sentinelUrl({ ...options, sentinelPassword: SENTINEL_PASSWORDS.default }, host))

    it('connects to the new primary over TLS after the old one is killed', async () => {
      const [one] = await twoReplicas(sentinelUrl(withPassword()))
      const operator = sentinel.connect({ password: SENTINEL_PASSWORDS.default })
      const primaryPort = async () => Number(((await operator.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'petstore')) as string[])[1])
      try {
        await until(
          'the Sentinel knows the replica',
          async () => {
            const known = JSON.stringify(await operator.call('SENTINEL', 'REPLICAS', 'petstore'))
            return known.includes(`"${replica.port}"`) && known.includes('"master-link-status","ok"')
          },
          30_000,
        )
        await primary.kill()
        await until('the replica is the primary', async () => (await primaryPort()) === replica.port, 30_000)
        await untilUp(one, 30_000)
        const observer = replica.connect({ password: PRIMARY_PASSWORD })
        await until(
          'the new primary makes the decisions',
          async () => {
            await takeOne(one.quotas, 'key_after', FREE)
            return (await observer.exists(KEYS.quota('key_after'))) === 1
          },
          10_000,
        )
        observer.disconnect()
      } finally {
        operator.disconnect()
      }
    })
  })
})

/** Percent-encoded as operators write it: + and / stay unchanged. */
function toQuery(options: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(options).map(
    ([name, value]) => `${name}=${encodeURIComponent(value).replaceAll('%2B', '+').replaceAll('%2F', '/')}`,
  )
  return `?${pairs.join('&')}`
}
