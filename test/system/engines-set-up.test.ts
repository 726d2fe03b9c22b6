import { spawnSync } from 'node:child_process'
import { appendFileSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { findProgram } from '../support/engines/find-program.js'
import { skipFor } from '../support/skip.js'

const RECIPES = resolve('scripts/engines')

describe('scripts/set-up-engines.sh', () => {
  let folder: string

  beforeEach(function () {
    folder = mkdtempSync(join(tmpdir(), 'petstore-set-up-'))
    for (const name of ['bash', 'cat', 'cut', 'dirname', 'mktemp', 'rm', 'setsid', 'sha256sum', 'sleep', 'tail']) {
      symlinkSync(findProgram(name) ?? skipFor(this, `${name} is not installed`), join(folder, name))
    }
    cpSync('scripts', join(folder, 'scripts'), { recursive: true })
    createFakeProgram('id', 'echo 0')
    createFakeProgram('docker', '')
    createFakeProgram('python3', '')
    createFakeProgram('scripts/engines/client-tools.sh', '')
    for (const installed of ['redis-server', 'nginx', 'debootstrap', 'curl', 'openssl', 'chromium', 'dockerd', 'apt-get'])
      createFakeProgram(installed)
  })

  afterEach(() => rmSync(folder, { recursive: true }))

  it('changes nothing, in less than two seconds, if everything is installed', () => {
    const startedMs = performance.now()
    expect(setUp()).to.include({ status: 0, output: '', calls: '' })
    expect(performance.now() - startedMs).to.be.lessThan(2_000)
  })

  it('installs only the packages of missing programs', () => {
    for (const missing of ['redis-server', 'chromium']) rmSync(join(folder, missing))
    const { status, calls } = setUp()
    expect(status).to.equal(0)
    expect(calls).to.match(/^apt-get .* install --no-install-recommends redis-server chromium$/m)
  })

  it('does not install Chromium if CHROMIUM_PATH is set', () => {
    rmSync(join(folder, 'chromium'))
    expect(setUp({ CHROMIUM_PATH: '/opt/chromium' })).to.include({ status: 0, calls: '' })
  })

  it('installs venv if Python 3 lacks it', () => {
    createFakeProgram('python3', 'exit 1')
    const { status, calls } = setUp()
    expect(status).to.equal(0)
    expect(calls).to.match(/^apt-get .* install --no-install-recommends python3-venv$/m)
  })

  it('installs the client tools while it sets up the rest, and waits for them', () => {
    const wait = `while [ ! -e ${folder}/inspected ]; do sleep 0.1; done`
    createFakeProgram('docker', `[ "$1" = version ] || : > ${folder}/inspected`)
    createFakeProgram('scripts/engines/client-tools.sh', `[ "$1" = install ] || exit 1; ${wait}; sleep 0.5; record "$@"`)
    expect(setUp()).to.include({ status: 0, calls: 'client-tools.sh install\n' })
  })

  it('fails with the end of the log if the client tools cannot be installed', () => {
    createFakeProgram('scripts/engines/client-tools.sh', '[ "$1" = install ] || exit 1; echo planted; exit 1')
    const { status, output } = setUp()
    expect(status).to.equal(1)
    expect(output).to.match(/installing the client tools failed\. The end of the log:\nplanted\n.*ENGINES=found-only/s)
  })

  it('starts dockerd if Docker does not respond: it keeps running and writes to its own log', () => {
    createFakeProgram('docker', `[ "$1" != version ] || [ -e ${folder}/responds ]`)
    createFakeProgram('dockerd', `echo planted; : > ${folder}/responds; exec sleep 5`)
    const DOCKERD_LOG = join(folder, 'dockerd.log')
    expect(setUp({ DOCKERD_LOG }).status).to.equal(0)
    expect(readFileSync(DOCKERD_LOG, 'utf8')).to.equal('planted\n')
    expect(setUp()).to.include({ status: 0, output: '' })
  })

  it('installs Docker Compose if Docker does not have it', () => {
    createFakeProgram('docker', '[ "$1" != compose ]')
    createFakeProgram('scripts/engines/install-compose.sh')
    expect(setUp()).to.include({ status: 0, calls: 'install-compose.sh \n' })
  })

  it('pulls an official image that Docker does not have', () => {
    createFakeDocker({ lacks: 'redis:7|mongo:8|petstore-test/*', pulls: '*' })
    const { status, calls } = setUp()
    expect(status).to.equal(0)
    expect(calls.match(/^docker pull .*$/gm)).to.deep.equal(['docker pull redis:7', 'docker pull mongo:8'])
  })

  it('does not pull an image whose locally built substitute is there', () => {
    createFakeDocker({ lacks: 'redis:7|mongo:8', pulls: '*' })
    expect(setUp()).to.include({ status: 0, calls: '' })
  })

  it('builds an image that cannot be pulled, under the name that its recipe gives it', () => {
    createFakeDocker({ lacks: 'redis:7|petstore-test/*', pulls: 'nothing' })
    createFakeProgram('scripts/engines/redis-image.sh')
    const image = nameIn(join(folder, 'scripts/engines'), 'redis', folder)
    expect(setUp()).to.include({ status: 0, calls: `docker pull redis:7\nredis-image.sh ${image}` })
  })

  it('fails with the end of the log if an image cannot be built', () => {
    createFakeDocker({ lacks: 'redis:7|petstore-test/*', pulls: 'nothing' })
    createFakeProgram('scripts/engines/redis-image.sh', 'echo planted; exit 1')
    const { status, output } = setUp()
    expect(status).to.equal(1)
    expect(output).to.match(/building petstore-test\/redis:[0-9a-f]{12} failed\. The end of the log:\nplanted\n.*ENGINES=found-only/s)
  })

  it('pulls the images that REDIS_IMAGE and MONGODB_IMAGE name, and fails if it cannot', () => {
    createFakeDocker({ lacks: 'mine/*', pulls: 'mine/redis:1' })
    const { status, output } = setUp({ REDIS_IMAGE: 'mine/redis:1', MONGODB_IMAGE: 'mine/mongo:1' })
    expect(output).to.include('pulling mine/mongo:1 failed')
    expect(status).to.equal(1)
  })

  it('fails with the end of the log if packages cannot be installed', () => {
    rmSync(join(folder, 'curl'))
    createFakeProgram('apt-get', 'echo no network; exit 100')
    const { status, output } = setUp()
    expect(status).to.equal(1)
    expect(output).to.match(/installing curl failed\. The end of the log:\n.*no network\n.*ENGINES=found-only/s)
  })

  it('fails if Docker does not respond at DOCKER_HOST: it starts no other Docker', () => {
    createFakeProgram('docker', 'exit 1')
    const { status, output } = setUp({ DOCKER_HOST: 'unix:///nowhere' })
    expect(status).to.equal(1)
    expect(output).to.include('Docker does not respond at DOCKER_HOST, which is unix:///nowhere')
  })

  const machines: [name: string, prepare: () => void, env: NodeJS.ProcessEnv][] = [
    ['with ENGINES=found-only', () => undefined, { ENGINES: 'found-only' }],
    ['as a user other than root', () => createFakeProgram('id', 'echo 1000'), {}],
    ['on a system other than Debian', () => rmSync(join(folder, 'apt-get')), {}],
  ]
  for (const [name, prepare, env] of machines) {
    it(`installs and starts nothing ${name}, says so in one line, and succeeds`, () => {
      createFakeProgram('docker', 'exit 1')
      rmSync(join(folder, 'redis-server'))
      prepare()
      const { status, output, calls } = setUp(env)
      expect(output).to.match(/^Engines: [^\n]* Tests that need a missing engine are skipped\.\n$/)
      expect({ status, calls }).to.deep.equal({ status: 0, calls: '' })
    })
  }

  it('rejects unknown values of ENGINES', () => {
    expect(setUp({ ENGINES: 'found_only' })).to.include({ status: 1, calls: '' })
  })

  /** Creates a fake program, which by default only records its arguments. */
  function createFakeProgram(name: string, body = 'record "$@"'): void {
    const record = `record() { echo "\${0##*/} $*" >> ${folder}/calls; }`
    writeFileSync(join(folder, name), `#!${findProgram('bash')}\n${record}\n${body}\n`, { mode: 0o755 })
  }

  /** Creates a fake Docker. Both options are patterns of image names. */
  function createFakeDocker({ lacks, pulls }: { lacks: string; pulls: string }): void {
    createFakeProgram(
      'docker',
      `case "$1 $2" in
        pull*) record "$@"; case "$2" in ${pulls}) echo pulled; echo "$2" >> ${folder}/pulled ;; *) echo no registry; exit 1 ;; esac ;;
        'image inspect') case "$3" in ${lacks}) [[ -e ${folder}/pulled && $(< ${folder}/pulled) = *"$3"* ]] ;; esac ;;
      esac`,
    )
  }

  function setUp(env: NodeJS.ProcessEnv = {}) {
    const { status, stdout, stderr } = spawnSync('bash', [join(folder, 'scripts/set-up-engines.sh')], {
      encoding: 'utf8',
      env: { PATH: folder, HOME: folder, ...env },
      timeout: 8_000,
    })
    const calls = join(folder, 'calls')
    return { status, output: stdout + stderr, calls: existsSync(calls) ? readFileSync(calls, 'utf8') : '' }
  }
})

describe('a locally built image', () => {
  let folder: string

  beforeEach(function () {
    folder = mkdtempSync(join(tmpdir(), 'petstore-recipes-'))
    if (findProgram('sha256sum') === undefined) skipFor(this, 'sha256sum is not installed')
    cpSync(RECIPES, folder, { recursive: true })
  })

  afterEach(() => rmSync(folder, { recursive: true }))

  const getImageName = (recipe: string) => nameIn(folder, recipe)

  const files = [
    ['mongodb-wire', 'mongodb-wire-image.sh'],
    ['mongodb-wire', 'mongodb-wire-entrypoint.sh'],
    ['node-build', 'node-build-image.sh'],
    ['node-build', 'copy-programs.sh'],
    ['node-runtime', 'node-runtime-image.sh'],
    ['node-runtime', 'copy-programs.sh'],
  ] as const
  for (const [recipe, recipeFile] of files) {
    it(`gets a new name when its recipe changes: ${recipeFile} of ${recipe}`, () => {
      const before = getImageName(recipe)
      expect(before).to.match(new RegExp(`^petstore-test/${recipe}:[0-9a-f]{12}\n$`))
      expect(getImageName(recipe)).to.equal(before)
      appendFileSync(join(folder, recipeFile), '\n')
      expect(getImageName(recipe)).to.not.equal(before)
    })
  }
})

describe('the entry point of the MongoDB-wire image', () => {
  const PROGRAMS = ['postgres', 'psql', 'ferretdb', 'rm', 'sleep']
  let folder: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'petstore-programs-'))
    for (const program of PROGRAMS) writeFileSync(join(folder, program), '#!/bin/sh\nexit 0\n', { mode: 0o755 })
  })

  afterEach(() => rmSync(folder, { recursive: true }))

  for (const program of PROGRAMS) {
    it(`fails at once and names the missing program: ${program}`, () => {
      rmSync(join(folder, program))
      const entrypoint = join(RECIPES, 'mongodb-wire-entrypoint.sh')
      const run = spawnSync('/bin/sh', [entrypoint], { env: { PATH: folder }, encoding: 'utf8', timeout: 5_000 })
      expect(run).to.include({ status: 1, stderr: `mongodb-wire: cannot start without these programs: ${program}\n` })
    })
  }
})

function nameIn(recipes: string, image: string, path = process.env['PATH']): string {
  return spawnSync('bash', [join(recipes, 'image-name.sh'), image], { encoding: 'utf8', env: { PATH: path } }).stdout
}
