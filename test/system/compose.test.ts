import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import type { Stack } from '../support/compose.js'
import { prepareStack } from '../support/compose.js'

/** Without the layers of an earlier build, npm installs all packages twice. */
const BUILD_TIMEOUT_MS = 600_000
const START_TIMEOUT_MS = 180_000

const run = promisify(execFile)

describe('docker compose up', function () {
  this.timeout(60_000)

  let stack: Stack
  let url: string
  let key: string

  before(async function () {
    this.timeout(BUILD_TIMEOUT_MS)
    stack = await prepareStack(this)
    await start()
    key = await issueKey('--plan', 'pro')
  })

  after(async function () {
    this.timeout(START_TIMEOUT_MS)
    await stack?.remove()
  })

  it('serves the API over TLS, with the certificate that the script has created', async () => {
    expect(await call('/v1/pets?limit=1')).to.deep.equal(['200'])
    const unknownAuthority = await run('curl', ['--silent', `${url}/v1/pets`]).catch(({ code }: { code: number }) => code)
    expect(unknownAuthority).to.equal(60)
  })

  it('starts three replicas, and nginx distributes the requests over all of them', async () => {
    await call('/v1/pets?limit=[1-30]')
    const replicas = [...(await stack.compose('logs', 'nginx')).matchAll(/"replicas":"([^"]+)"/g)].map(([, address]) => address)
    expect(new Set(replicas)).to.have.property('size', 3)
  })

  it('grants exactly the quota of a key over all replicas', async () => {
    const limited = await issueKey('--plan', 'enterprise', '--minute', '1000', '--day', '50')
    const statuses = await call('/v1/pets?limit=[1-100]', limited)
    expect(statuses.filter((status) => status === '200')).to.have.lengthOf(50)
    expect(statuses.filter((status) => status === '429')).to.have.lengthOf(50)
  })

  it('publishes only the port of nginx, and only on this machine', async () => {
    const published = (await stack.inspect()).flatMap(({ Name, NetworkSettings }) =>
      Object.entries(NetworkSettings.Ports).flatMap(([port, bindings]) =>
        (bindings ?? []).map(({ HostIp }) => `${Name} ${port} ${HostIp}`),
      ),
    )
    expect(published).to.have.lengthOf(1)
    expect(published[0]).to.match(/nginx-1 443\/tcp 127\.0\.0\.1$/)
  })

  it('lets Prometheus scrape every replica by the name in config/prometheus, but not clients through nginx', async () => {
    expect(await call('/metrics')).to.deep.equal(['404'])
    const scrapeAll = `
      const addresses = await require('node:dns').promises.resolve4('petstore')
      const responses = await Promise.all(addresses.map((address) => fetch('http://' + address + ':9090/metrics')))
      for (const response of responses) console.log(response.status, (await response.text()).includes('petstore_ready 1'))`
    expect((await evaluate(scrapeAll)).split('\n')).to.deep.equal(Array(3).fill('200 true'))
  })

  it('runs every container without root, capabilities and new privileges, with a memory limit', async () => {
    for (const { Name, HostConfig } of await stack.inspect()) {
      const { CapDrop, CapAdd, Privileged, SecurityOpt, Memory } = HostConfig
      expect({ CapDrop, CapAdd, Privileged, SecurityOpt }, Name).to.deep.equal({
        CapDrop: ['ALL'],
        CapAdd: null,
        Privileged: false,
        SecurityOpt: ['no-new-privileges:true'],
      })
      expect(Memory, Name).to.be.greaterThan(0)
      const { stdout } = await run('docker', ['top', Name.slice(1), '-o', 'pid,uid'])
      const users = [...stdout.matchAll(/^ *\d+ +(\d+)$/gm)].map(([, uid]) => uid)
      expect(users, Name).to.have.lengthOf.at.least(1).and.not.include('0')
    }
  })

  it('runs nginx, the service and Redis with a read-only file system', async () => {
    const readOnly = (await stack.inspect()).filter(({ HostConfig }) => HostConfig.ReadonlyRootfs).map(({ Config }) => Config.Labels)
    const services = new Set(readOnly.map((labels) => labels['com.docker.compose.service']))
    expect([...services]).to.include.members(['nginx', 'petstore', 'redis'])
  })

  it('shows no secret in the definition of a container or in a list of its processes', async () => {
    const containers = await stack.inspect()
    const processes = await Promise.all(containers.map(({ Name }) => run('docker', ['top', Name.slice(1), '-o', 'pid,args'])))
    const visible = JSON.stringify(containers) + processes.map(({ stdout }) => stdout).join('')
    for (const name of readdirSync(stack.secrets)) expect(visible, name).to.not.include(readSecret(name))
  })

  it('requires passwords for MongoDB and Redis', async () => {
    const askMongo = `
      const { MongoClient } = require('mongodb')
      const client = new MongoClient('mongodb://mongodb/petstore')
      await client.db().collection('pets').findOne().catch((error) => console.log(error.message))
      await client.close()`
    expect(await evaluate(askMongo)).to.match(/requires authentication/)
    const askRedis = `
      const { Redis } = require('ioredis')
      const client = new Redis('redis://redis')
      await client.dbsize().catch((error) => console.log(error.message))
      client.disconnect()`
    expect(await evaluate(askRedis)).to.match(/^NOAUTH/)
  })

  it('keeps quotas, keys and pets when all containers are replaced, and stops every replica gracefully', async function () {
    this.timeout(START_TIMEOUT_MS)
    const exhausted = await issueKey('--plan', 'enterprise', '--minute', '1000', '--day', '1')
    expect(await call('/v1/pets', exhausted)).to.deep.equal(['200'])
    await stack.compose('exec', '-T', 'petstore', 'node', 'dist/src/main.js', 'seed', '--pets', '3', '--orders', '0')

    await stack.compose('stop')
    const ends = (await stack.inspect()).map(({ Config, State }) => [Config.Labels['com.docker.compose.service'], State.ExitCode])
    expect(ends.filter(([service]) => service === 'petstore')).to.deep.equal(Array(3).fill(['petstore', 0]))
    await stack.compose('down')
    await start()

    expect(await call('/v1/pets', exhausted)).to.deep.equal(['429'])
    expect(await call('/v1/pets/3')).to.deep.equal(['200'])
  })

  async function start(): Promise<void> {
    await stack.compose('up', '--detach', '--wait', '--no-build')
    url = `https://${(await stack.compose('port', 'nginx', '443')).replace('127.0.0.1', 'localhost')}`
  }

  async function issueKey(...options: string[]): Promise<string> {
    const output = await stack.compose('exec', '-T', 'petstore', 'node', 'dist/src/main.js', 'keys', 'issue', '--owner', 'Acme', ...options)
    return /pst_live_\w+/.exec(output)?.[0] ?? expect.fail(output)
  }

  /** Sends a request, or one per number of a range such as [1-30], in parallel. Returns the statuses. */
  async function call(path: string, apiKey = key): Promise<string[]> {
    const options = [
      '--silent',
      '--parallel',
      '--cacert',
      join(stack.secrets, 'certificate.pem'),
      '--header',
      `Authorization: Bearer ${apiKey}`,
    ]
    const { stdout } = await run('curl', [...options, '--write-out', '\n%{http_code}\n', `${url}${path}`])
    return stdout.match(/^\d{3}$/gm) ?? []
  }

  /** Runs a program in a replica. */
  async function evaluate(program: string): Promise<string> {
    return stack.compose('exec', '-T', 'petstore', 'node', '--eval', `(async () => {${program}})()`)
  }

  function readSecret(name: string): string {
    return readFileSync(join(stack.secrets, name), 'utf8').trim()
  }
})
