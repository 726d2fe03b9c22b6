import { expect } from 'chai'
import { Cluster, Redis } from 'ioredis'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AddressInfo, Socket } from 'node:net'
import { createServer } from 'node:net'
import { makeRedisClient } from '../../../src/adapters/redis/make-redis-client.js'
import { OperatorError } from '../../../src/core/errors.js'
import type { IssuedCertificate } from '../../support/certificate-authority.js'
import { CertificateAuthority } from '../../support/certificate-authority.js'

const PASSWORD = 'hunter2'

describe('a client made from REDIS_URL', () => {
  for (const [url, options] of Object.entries({
    'redis://localhost': { host: 'localhost', port: 6379, db: 0 },
    'redis://redis.example:7000': { host: 'redis.example', port: 7000, db: 0 },
    'redis://localhost/3': { host: 'localhost', port: 6379, db: 3 },
    'redis://localhost:7000/': { host: 'localhost', port: 7000, db: 0 },
    'redis://[::1]:7000/2': { host: '::1', port: 7000, db: 2 },
    [`redis://:${PASSWORD}@localhost`]: { host: 'localhost', username: null, password: PASSWORD },
    [`redis://quota:${PASSWORD}@localhost:7000/1`]: { host: 'localhost', port: 7000, username: 'quota', password: PASSWORD, db: 1 },
    'redis://us%40er:p%3Ass%40w%2Frd@localhost': { username: 'us@er', password: 'p:ss@w/rd' },
  })) {
    it(`reads ${url}`, () => {
      const client = makeRedisClient(url)
      expect(client).to.be.instanceOf(Redis)
      expect(client.options).to.include(options)
      expect(client.options).not.to.have.property('tls')
      expect(client.status).to.equal('wait')
    })
  }

  it('has all nodes of a cluster, the user and the password', () => {
    const cluster = makeRedisClient(`redis+cluster://quota:${PASSWORD}@one:7000,two,[::1]:7002`) as Cluster
    expect(cluster).to.be.instanceOf(Cluster)
    expect(Reflect.get(cluster, 'startupNodes')).to.deep.equal([
      { host: 'one', port: 7000 },
      { host: 'two', port: 6379 },
      { host: '::1', port: 7002 },
    ])
    expect(cluster.options.redisOptions).to.include({ username: 'quota', password: PASSWORD })
  })

  it('has all Sentinels, with their own default port, and the name of the primary', () => {
    const { options } = makeRedisClient(`redis+sentinel://:${PASSWORD}@one:26380,two/petstore/4`) as Redis
    expect(options).to.deep.include({
      sentinels: [
        { host: 'one', port: 26_380 },
        { host: 'two', port: 26_379 },
      ],
    })
    expect(options).to.include({ name: 'petstore', db: 4, password: PASSWORD })
  })

  for (const scheme of ['redis', 'rediss']) {
    it(`survives a second error of the same socket, as TLS sockets emit it, with ${scheme}://`, async () => {
      const listener = createServer().listen(0, '127.0.0.1')
      await once(listener, 'listening')
      const client = makeRedisClient(`${scheme}://127.0.0.1:${(listener.address() as AddressInfo).port}`) as Redis
      const errors: string[] = []
      client.on('nodeError', ({ message }: Error) => errors.push(message))
      client.on('error', () => undefined)
      client.connect().catch(() => undefined)
      await once(listener, 'connection')
      const socket: Socket = Reflect.get(client, 'stream')
      for (const message of ['first', 'second']) socket.emit('error', new Error(message))
      client.disconnect()
      listener.close()
      expect(errors).to.include.members(['first', 'second'])
    })
  }

  for (const url of ['redis://localhost', 'redis+sentinel://one,two/petstore']) {
    it(`fails at once without a connection, and never sends a command twice, with ${url}`, () => {
      expect(makeRedisClient(url).options).to.include({
        enableOfflineQueue: false,
        autoResendUnfulfilledCommands: false,
        maxRetriesPerRequest: 0,
        lazyConnect: true,
      })
    })
  }

  it('never sends a command twice to a cluster', () => {
    const { options } = makeRedisClient('redis+cluster://one,two') as Cluster
    expect(options).to.include({ retryDelayOnFailover: 0, retryDelayOnClusterDown: 0 })
    expect(options.redisOptions).to.include({ autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 })
  })

  it('reconnects if the server is no longer the primary, whatever the wording of the error', () => {
    const { reconnectOnError } = (makeRedisClient('redis://localhost') as Redis).options
    for (const message of [
      "READONLY You can't write against a read only replica. script: 3f, on @user_script:1.",
      "ERR Error running script (call to f_3f): @user_script:1: -READONLY You can't write against a read only replica.",
    ])
      expect(reconnectOnError?.(new Error(message)), message).to.equal(true)
    expect(reconnectOnError?.(new Error('OOM command not allowed'))).to.equal(false)
  })

  it('sends sentinelUsername and sentinelPassword to the Sentinel only', () => {
    const query = 'sentinelUsername=us%40er&sentinelPassword=p%26ss+w%25rd%2B'
    const { options } = makeRedisClient(`redis+sentinel://quota:${PASSWORD}@one/petstore?${query}`) as Redis
    expect(options).to.include({ username: 'quota', password: PASSWORD, sentinelUsername: 'us@er', sentinelPassword: 'p&ss+w%rd+' })
    const without = makeRedisClient(`redis+sentinel://quota:${PASSWORD}@one/petstore`).options as Redis['options']
    expect(without.sentinelPassword).to.equal(undefined)
  })

  for (const url of [
    `http://quota:${PASSWORD}@localhost`,
    `redis:/quota:${PASSWORD}@localhost`,
    `redis://quota:${PASSWORD}@`,
    `redis://quota:${PASSWORD}@one,two`,
    `redis://quota:${PASSWORD}@localhost/one`,
    `redis://quota:${PASSWORD}@localhost/1/2`,
    `redis://quota:${PASSWORD}@localhost:port`,
    `redis://quota:${PASSWORD}@localhost:123456`,
    `redis://quota:${PASSWORD}@localhost:99999`,
    `redis://quota:${PASSWORD}@localhost:0`,
    `redis://quota:${PASSWORD}@localhost:65536`,
    `redis://quota:${PASSWORD}%zz@localhost`,
    `redis://quo%zzta:${PASSWORD}@localhost`,
    `redis+sentinel://quota:${PASSWORD}@one,two`,
    `redis+sentinel://quota:${PASSWORD}@one,two/`,
    `redis+sentinel://quota:${PASSWORD}@one,two/petstore/x`,
    `redis+cluster://quota:${PASSWORD}@one,,two`,
    `redis+cluster://quota:${PASSWORD}@one,two/3`,
    `redis+ring://quota:${PASSWORD}@one,two`,
    `redis://localhost?password=${PASSWORD}`,
    `redis://localhost/?tlscafile=/ca.pem&sentinelPassword=${PASSWORD}`,
    `redis+sentinel://one/petstore?sentinelPassword=${PASSWORD}&sentinelPassword=${PASSWORD}`,
    `redis+sentinel://one/petstore?sentinelPassword=${PASSWORD}%zz`,
    `redis+sentinel://one/petstore?sentinelPassword=${PASSWORD}@zz`,
    `redis+sentinel://one/petstore?sentinelPassword=x&${PASSWORD}`,
    `redis+sentinel://one/petstore?sentinelUsername=${PASSWORD}`,
    `redis+sentinel://:${PASSWORD}@one/petstore?sentinelPassword=`,
    `redis+sentinel://one/petstore?tlsCertificateKeyFilePassword=${PASSWORD}`,
    `redis+cluster://one,two?sentinelPassword=${PASSWORD}`,
    `redis://localhost?sentinelPassword=${PASSWORD}`,
    `redis://localhost?tlsCertificateKeyFilePassword=${PASSWORD}`,
    `rediss://localhost?tlsCertificateKeyFilePassword=${PASSWORD}`,
    PASSWORD,
    '',
  ]) {
    it(`rejects ${url === '' ? 'an empty URL' : url} with an error that names the setting and contains no password`, () => {
      let rejection: unknown
      try {
        makeRedisClient(url).disconnect()
      } catch (error) {
        rejection = error
      }
      expect(rejection).to.be.instanceOf(OperatorError)
      expect(String(rejection)).to.include('REDIS_URL')
      expect(String(rejection)).not.to.include(PASSWORD)
    })
  }
})

describe('the options of REDIS_URL', () => {
  let authority: CertificateAuthority
  let client: IssuedCertificate
  let encrypted: IssuedCertificate
  let noCertificate: string

  before(async () => {
    authority = await CertificateAuthority.create('Authority')
    client = await authority.issue({ names: ['petstore'] })
    encrypted = await authority.issue({ names: ['petstore'], keyPassword: PASSWORD })
    noCertificate = join(authority.folder, 'no certificate')
    writeFileSync(noCertificate, 'no certificate')
  })

  after(() => authority?.remove())

  const getReason = (url: string) => {
    try {
      makeRedisClient(url).disconnect()
    } catch (error) {
      expect(error).to.be.instanceOf(OperatorError)
      return String(error).replace('Error: REDIS_URL cannot be used: ', '')
    }
    return 'nothing'
  }

  for (const scheme of ['rediss://localhost', 'rediss+cluster://localhost', 'rediss+sentinel://localhost/petstore']) {
    it(`must name readable PEM files with ${scheme}: otherwise the error names the option, the path and the code`, () => {
      const file = authority.caFile
      expect(getReason(`${scheme}?tlsCAFile=/no/ca.pem`)).to.equal('cannot read tlsCAFile /no/ca.pem (ENOENT)')
      expect(getReason(`${scheme}?tlsCertificateKeyFile=/no/client.pem`)).to.equal(
        'cannot read tlsCertificateKeyFile /no/client.pem (ENOENT)',
      )
      expect(getReason(`${scheme}?tlsCAFile=${authority.folder}`)).to.equal(`cannot read tlsCAFile ${authority.folder} (EISDIR)`)
      expect(getReason(`${scheme}?tlsCAFile=${encodeURIComponent(noCertificate)}`)).to.equal(
        `tlsCAFile ${noCertificate} does not contain a certificate (ERR_OSSL_PEM_NO_START_LINE)`,
      )
      expect(getReason(`${scheme}?tlsCertificateKeyFile=${file}`)).to.match(
        new RegExp(
          `^tlsCertificateKeyFile ${file} does not contain a certificate and its private key, or the key cannot be decrypted \\(ERR_\\w+\\)$`,
        ),
      )
      expect(getReason(`${scheme}?tlsCAFile=${file}&tlsCertificateKeyFile=${client.certificateKeyFile}`)).to.equal('nothing')
    })
  }

  it('must include the password of an encrypted key', () => {
    const url = `rediss://localhost?tlsCertificateKeyFile=${encrypted.certificateKeyFile}`
    expect(getReason(url)).to.match(/does not contain a certificate and its private key, or the key cannot be decrypted \(ERR_\w+\)$/)
    expect(getReason(`${url}&tlsCertificateKeyFilePassword=wrong`)).to.match(
      /does not contain a certificate and its private key, or the key cannot be decrypted \(ERR_\w+\)$/,
    )
    expect(getReason(`${url}&tlsCertificateKeyFilePassword=${PASSWORD}`)).to.equal('nothing')
  })

  it('are named in the error if they are unknown, repeated, empty or without effect on the URL', () => {
    expect(getReason('rediss://localhost?tlsCaFile=/ca.pem')).to.match(/^it has an unknown option tlsCaFile; the options are tlsCAFile, /)
    expect(getReason('rediss://localhost?tlsCAFile=/ca.pem&tlsCAFile=/ca.pem')).to.equal('tlsCAFile is set twice')
    expect(getReason('rediss://localhost?tlsCAFile')).to.equal('tlsCAFile has no value')
    expect(getReason('redis://localhost?tlsCAFile=/ca.pem')).to.equal('tlsCAFile requires a URL that begins with rediss')
    expect(getReason('rediss://localhost?sentinelPassword=secret')).to.equal(
      'sentinelPassword requires redis+sentinel:// or rediss+sentinel://',
    )
    expect(getReason('redis+sentinel://one/petstore?sentinelUsername=me')).to.equal('sentinelUsername requires sentinelPassword')
  })
})
