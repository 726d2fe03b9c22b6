import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { expect } from 'chai'
import { parse } from 'yaml'
import type { Config } from '../../src/config.js'
import { readConfig } from '../../src/config.js'
import { getSetting, SETTING_NAMES } from '../../src/settings.js'
import { findCompose } from '../support/compose.js'

interface ComposeFile {
  readonly services: Readonly<Record<string, Service>>
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
}

interface Service {
  readonly image: string
  readonly restart: string
  readonly environment?: Readonly<Record<string, string>>
  readonly healthcheck?: { readonly test: readonly string[] }
  readonly stop_grace_period?: string
  readonly ports?: readonly { readonly host_ip: string }[]
  readonly networks: Readonly<Record<string, unknown>>
  readonly volumes?: readonly { readonly type: string; readonly source: string }[]
  readonly deploy: {
    readonly replicas?: number
    readonly resources: { readonly limits: { readonly memory: string; readonly pids: number } }
  }
}

const read = (path: string) => readFileSync(path, 'utf8')

describe('docker-compose.yml, with its defaults', () => {
  let file: ComposeFile
  let petstore: Service

  before(async function () {
    await findCompose(this)
    file = render('--profile', 'monitoring')
    petstore = file.services['petstore'] ?? expect.fail('no service petstore')
  })

  it('starts nginx, three replicas, MongoDB and Redis, and with the profile "monitoring" Prometheus and Grafana', () => {
    const withoutProfile = ['nginx', 'petstore', 'mongodb', 'redis']
    expect(render().services).to.have.all.keys(withoutProfile)
    expect(file.services).to.have.all.keys(...withoutProfile, 'prometheus', 'grafana')
    expect(petstore.deploy.replicas).to.equal(3)
  })

  it('names the version of every image', () => {
    for (const { image } of Object.values(file.services)) expect(image).to.match(/:(?!latest$)[\w.-]+$/)
  })

  it('gives every service a health check, limits and a restart policy', () => {
    for (const [name, { healthcheck, deploy, restart }] of Object.entries(file.services)) {
      expect(healthcheck?.test.length ?? Number(name === 'petstore'), name).to.be.greaterThan(0)
      expect(Number(deploy.resources.limits.memory), name).to.be.greaterThan(0)
      expect(deploy.resources.limits.pids, name).to.be.greaterThan(0)
      expect(restart, name).to.equal('unless-stopped')
    }
    expect(read('Dockerfile'), 'the health check of petstore').to.match(/^HEALTHCHECK /m)
  })

  it('publishes ports on this machine only, and none of a replica or database', () => {
    const published = Object.entries(file.services).flatMap(([name, { ports = [] }]) => ports.map(({ host_ip }) => `${name} ${host_ip}`))
    expect(published).to.have.members(['nginx 127.0.0.1', 'prometheus 127.0.0.1', 'grafana 127.0.0.1'])
  })

  it('sets only settings that exist, to valid values', () => {
    const known = SETTING_NAMES.flatMap((name) => (getSetting(name).isSecret ? [name, `${name}_FILE`] : [name]))
    const settings = Object.keys(petstore.environment ?? {}).filter((name) => name !== 'OTEL_EXPORTER_OTLP_ENDPOINT')
    expect(known).to.include.members(settings)
    expect(toConfig().trustedProxyHops).to.equal(1)
  })

  it('gives a replica the time that nginx needs to notice that it stops, and enough time to stop', () => {
    const { drainDelayMs, shutdownTimeoutMs } = toConfig()
    expect(drainDelayMs).to.be.at.least(3_000)
    expect(Number(/^(\d+)s$/.exec(petstore.stop_grace_period ?? '')?.[1]) * 1_000).to.be.greaterThan(shutdownTimeoutMs + 2_000)
  })

  it('connects Prometheus to the admin port of every replica, and nginx to no database', () => {
    const { scrape_configs } = parse(read('config/prometheus/prometheus.yml')) as {
      scrape_configs: { dns_sd_configs: { names: string[]; port: number }[] }[]
    }
    const { adminHost, adminPort } = toConfig()
    expect(adminHost).to.equal('0.0.0.0')
    expect(scrape_configs.flatMap((job) => job.dns_sd_configs)).to.deep.equal([
      { names: ['petstore'], type: 'A', port: adminPort, refresh_interval: '15s' },
    ])
    const isConnected = (a: string, b: string) =>
      Object.keys(file.services[a]?.networks ?? {}).some((network) => network in (file.services[b]?.networks ?? {}))
    expect(isConnected('prometheus', 'petstore')).to.equal(true)
    expect(isConnected('nginx', 'petstore')).to.equal(true)
    for (const database of ['mongodb', 'redis']) expect(isConnected('nginx', database), database).to.equal(false)
  })

  it('mounts only files that exist', () => {
    const mounts = Object.values(file.services).flatMap(({ volumes = [] }) => volumes.filter(({ type }) => type === 'bind'))
    expect(mounts).to.have.lengthOf.at.least(4)
    for (const { source } of mounts) expect(existsSync(source), source).to.equal(true)
  })

  it('can be changed by the variables in .env.example, which have the same defaults', () => {
    const variables = [...read('docker-compose.yml').matchAll(/\$\{(\w+):-([^}]*)\}/g)].map(([, name, value]) => `${name}=${value}`)
    const bases = [...read('Dockerfile').matchAll(/^ARG (\w+_IMAGE=.+)$/gm)].map(([, base]) => base)
    const documented = [...read('.env.example').matchAll(/^#(\w+=.*)$/gm)].map(([, line]) => line)
    expect(documented).to.have.members([...new Set([...variables, ...bases])])
  })

  function toConfig(): Config {
    const secrets = { MONGODB_URL: 'mongodb://a/petstore', REDIS_URL: 'redis://a', CURSOR_SECRET: 'x'.repeat(32) }
    const environment = Object.entries(petstore.environment ?? {}).filter(([name]) => !name.endsWith('_FILE'))
    return readConfig({ NODE_ENV: 'production', HOST: '0.0.0.0', ...secrets, ...Object.fromEntries(environment) })
  }
})

describe('scripts/create-secrets.sh', () => {
  let folder: string

  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'petstore-secrets-'))))
  afterEach(() => rmSync(folder, { recursive: true }))

  const createSecrets = (...hosts: string[]) =>
    execFileSync('scripts/create-secrets.sh', hosts, { env: { PATH: process.env['PATH'], SECRETS_FOLDER: folder } })

  it('creates the secrets of docker-compose.yml, which only the owner of the folder can read', () => {
    createSecrets()
    const { secrets } = parse(read('docker-compose.yml'), { merge: true }) as ComposeFile
    expect(readdirSync(folder)).to.have.members(Object.values(secrets).map(({ file }) => basename(file)))
    expect(statSync(folder).mode & 0o777).to.equal(0o700)
  })

  it('does not change secrets that exist', () => {
    createSecrets()
    const readAll = () => readdirSync(folder).map((name) => read(join(folder, name)))
    const before = readAll()
    createSecrets('api.example')
    expect(readAll()).to.deep.equal(before)
  })

  it('creates a certificate for the hosts that it gets', () => {
    createSecrets('api.example', '192.0.2.7', '2001:db8::7')
    const text = execFileSync('openssl', ['x509', '-in', join(folder, 'certificate.pem'), '-noout', '-ext', 'subjectAltName'], {
      encoding: 'utf8',
    })
    expect(text).to.include('DNS:localhost, IP Address:127.0.0.1, DNS:api.example, IP Address:192.0.2.7, IP Address:2001:DB8:0:0:0:0:0:7')
  })
})

/** Ignores the environment and .env. */
function render(...options: string[]): ComposeFile {
  const { PATH, HOME } = process.env
  const args = ['compose', '--env-file', '/dev/null', ...options, 'config', '--format', 'json']
  return JSON.parse(execFileSync('docker', args, { encoding: 'utf8', env: { PATH, HOME } })) as ComposeFile
}
