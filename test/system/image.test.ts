import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { send } from '../support/api.js'
import { cleanUpAtEnd } from '../support/engines/cleanup.js'
import { findImage, RUN_LABEL } from '../support/engines/docker.js'
import { withEngine } from '../support/engines/no-engine.js'
import { until } from '../support/until.js'

/** Without the layers of an earlier build, npm installs all packages twice. */
const BUILD_TIMEOUT_MS = 600_000
const TEST_TIMEOUT_MS = 60_000

const run = promisify(execFile)

describe('the container image', function () {
  this.timeout(TEST_TIMEOUT_MS)

  let image: string
  let removeImage: () => Promise<void>
  const removeContainers = new Set<() => Promise<unknown>>()

  before(async function () {
    this.timeout(BUILD_TIMEOUT_MS)
    await withEngine(this, async () => {
      await findImage({ variable: 'NODE_IMAGE', official: findBaseImage('NODE_IMAGE'), recipe: 'node-build' })
      await findImage({ variable: 'RUNTIME_IMAGE', official: findBaseImage('RUNTIME_IMAGE'), recipe: 'node-runtime' })
    })
    const { stdout } = await run('scripts/build-image.sh', ['--quiet'])
    image = stdout.trim()
    removeImage = cleanUpAtEnd(async () => void (await docker('rmi', '--force', image)))
  })

  afterEach(async () => {
    for (const remove of removeContainers) await remove()
    removeContainers.clear()
  })

  after(() => removeImage?.())

  it('contains the production dependencies of the lock file, and no test, type definition or source map', async () => {
    const container = await docker('create', '--label', label(), image)
    removeLater(container)
    const { stdout } = await run('bash', ['-c', `docker export ${container} | tar -t`], { maxBuffer: 64 * 1024 ** 2 })
    const files = stdout.split('\n')
    const installed = new Set(files.flatMap((file) => /^app\/(node_modules\/.*)\/package\.json$/.exec(file)?.[1] ?? []))

    const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: Record<string, { dev?: true; optional?: true }> }
    const names = Object.keys(lock.packages).filter((name) => name !== '')
    expect(names.filter((name) => lock.packages[name]?.dev && installed.has(name))).to.deep.equal([])
    const needed = names.filter((name) => !lock.packages[name]?.dev && !lock.packages[name]?.optional)
    expect(needed.filter((name) => !installed.has(name))).to.deep.equal([])
    expect(files.filter((file) => /^app\/.*(\.map|\.[cm]?ts)$|^app\/dist\/(?!src\/|$)/.test(file))).to.deep.equal([])
  })

  it('needs no shell, is not built for root, and exposes no admin port', async () => {
    const { User, Entrypoint, Healthcheck, ExposedPorts } = JSON.parse(await inspect(image, 'json .Config'))
    expect(User).to.equal('65532:65532')
    expect(Entrypoint).to.deep.equal(['node', '--import', './dist/src/tracing.js', 'dist/src/main.js'])
    expect(Healthcheck.Test[0]).to.equal('CMD')
    expect(ExposedPorts).to.deep.equal({ '8080/tcp': {} })
  })

  it('serves requests with a read-only file system and without capabilities, and becomes healthy', async () => {
    const { container, url } = await start()
    await until('the container is healthy', async () => (await inspect(container, '.State.Health.Status')) === 'healthy', 30_000)
    const [key] = /pst_live_\w+/.exec(await docker('logs', container)) ?? []
    const { status } = await send(url, '/v1/pets', { headers: { Authorization: `Bearer ${key}` } })
    expect(status).to.equal(200)
  })

  it('is unhealthy if the service does not respond', async () => {
    const [, command = '', ...args] = JSON.parse(await inspect(image, 'json .Config.Healthcheck.Test')) as string[]
    const check = docker('run', '--rm', '--label', label(), '--entrypoint', command, image, ...args)
    expect(await check.catch(({ code }: { code: number }) => code)).to.equal(1)
  })

  it('stops gracefully: "docker stop" ends it with exit code 0 before the grace period ends', async () => {
    const { container } = await start()
    const startedMs = performance.now()
    await docker('stop', '--time', '20', container)
    expect(performance.now() - startedMs).to.be.lessThan(15_000)
    expect(await inspect(container, '.State.ExitCode')).to.equal('0')
    expect(await docker('logs', container)).to.include('"msg":"stopped"')
  })

  it('runs the other commands of petstore', async () => {
    expect(await docker('run', '--rm', '--label', label(), image, 'keys', '--help')).to.match(/^Usage: petstore keys /)
  })

  /** Starts the service and waits until it is ready. A terminal makes it print the demo keys. */
  async function start(): Promise<{ container: string; url: string }> {
    const options = ['--detach', '--tty', '--label', label(), '--publish', '127.0.0.1::8080', '--env', 'STORAGE=memory']
    const restrictions = ['--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges']
    const container = await docker('run', ...options, ...restrictions, image)
    removeLater(container)
    const url = `http://${(await docker('port', container, '8080')).trim()}`
    const isReady = async () => (await send(url, '/readyz').catch(() => undefined))?.status === 200
    await until('the container is ready', isReady, 20_000)
    return { container, url }
  }

  function removeLater(container: string): void {
    removeContainers.add(cleanUpAtEnd(() => docker('rm', '--force', '--volumes', container)))
  }
})

function findBaseImage(argument: string): string {
  const [, official] = new RegExp(`^ARG ${argument}=(.+)$`, 'm').exec(readFileSync('Dockerfile', 'utf8')) ?? []
  return official ?? expect.fail(`${argument} is not an argument of the Dockerfile`)
}

/** The next run of the tests removes containers that a killed run has left behind. */
function label(): string {
  return `${RUN_LABEL}=${hostname()}/${process.pid}`
}

async function docker(...args: string[]): Promise<string> {
  return (await run('docker', args)).stdout.trim()
}

async function inspect(imageOrContainer: string, path: string): Promise<string> {
  return docker('inspect', '--format', `{{${path}}}`, imageOrContainer)
}
