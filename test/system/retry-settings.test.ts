import type { IncomingMessage, ServerResponse } from 'node:http'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { StoreUnavailable } from '../../src/core/errors.js'
import type { PlanName } from '../../src/core/plan.js'
import type { Limits } from '../../src/core/quota.js'
import type { TestApi, TestApiOptions, TestResponse } from '../support/api.js'
import { startApi } from '../support/api.js'
import type { ClientTools } from '../support/client-tools.js'
import { openClientTools, readBlocks } from '../support/client-tools.js'
import { RunningClock } from '../support/running-clock.js'
import { UnreliablePetStore } from '../support/unreliable-pet-store.js'
import { until } from '../support/until.js'

const PAGE = 'docs/api/retry-settings.md'

interface Client {
  readonly name: string
  readonly language: 'go' | 'js' | 'python'
}

const CLIENTS: readonly Client[] = [
  { name: 'urllib3', language: 'python' },
  { name: 'httpx-retries', language: 'python' },
  { name: 'got', language: 'js' },
  { name: 'ky', language: 'js' },
  { name: 'axios-retry', language: 'js' },
  { name: 'undici', language: 'js' },
]

const LANGUAGES = {
  go: { program: ['go', 'run'], prepare: ['go mod init example', 'go mod tidy'], extension: 'go' },
  js: { program: [process.execPath], prepare: [], extension: 'mjs' },
  python: { program: ['python'], prepare: [], extension: 'py' },
} as const

const GO_CLIENT: Client = { name: 'retryablehttp', language: 'go' }

interface StartOptions extends Pick<TestApiOptions, 'config' | 'doubles'> {
  readonly limits?: Limits
  readonly secondsToMinuteEnd: number
}

interface Started {
  readonly api: TestApi
  readonly clock: RunningClock
  readonly keyId: string
  readonly secret: string
  readonly env: NodeJS.ProcessEnv
}

/** Longer than the default `maxTimeout` of undici. */
const SECONDS_TO_MINUTE_END = process.env['LONG'] === '1' ? 40 : 2

const WORKER_COUNT = 30

/** Threads that share a key. With `obey`, they wait for Retry-After; with `ignore`, for a delay that doubles. */
const WORKERS = `
import os, sys, threading, urllib3
retries = urllib3.Retry(total=8, status_forcelist=[429, 503], backoff_factor=0.25, respect_retry_after_header=sys.argv[1] == "obey")
http = urllib3.PoolManager(maxsize=${WORKER_COUNT}, retries=retries)
headers = {"Authorization": "Bearer " + os.environ["API_KEY"]}
def work():
    assert http.request("GET", os.environ["PETSTORE_URL"] + "/v1/pets", headers=headers).status == 200
threads = [threading.Thread(target=work) for _ in range(${WORKER_COUNT})]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("done")
`

describe('The settings of HTTP clients in docs/api/retry-settings.md', function () {
  this.timeout((SECONDS_TO_MINUTE_END + 60) * 1000)
  const opened: { tools?: ClientTools } = {}
  const apis: TestApi[] = []

  before(function () {
    opened.tools = openClientTools(this)
  })
  afterEach(async () => {
    opened.tools?.endPrograms()
    for (const api of apis.splice(0)) await api.stop()
  })
  after(() => opened.tools?.remove())

  it('belong to the clients that are tested', () => {
    for (const { name, language } of [...CLIENTS, GO_CLIENT]) expect(readBlocks(PAGE, name, language), name).to.have.length(1)
  })

  const tested = process.env['WITH_GO'] === '1' ? [...CLIENTS, GO_CLIENT] : CLIENTS
  it('make each client wait for Retry-After of a 503 and of a 429, and add one pet with three requests', async () => {
    const outcomes = await Promise.all(tested.map(async (client) => ({ ...client, ...(await retry(client)) })))
    for (const { name, exitCode, stdout, stderr, statuses, waitsMs, pets } of outcomes) {
      expect({ exitCode, stderr, statuses }, name).to.deep.equal({ exitCode: 0, stderr: '', statuses: [503, 429, 201] })
      expect(stdout, name).to.match(/^201 \{"id": ?\d+, ?"name": ?"Rex"/)
      expect(waitsMs[0], name).to.be.at.least(2_000)
      expect(waitsMs[1], name).to.be.at.least(SECONDS_TO_MINUTE_END * 1_000)
      expect(pets, name).to.equal(1)
    }
  })

  it('keep 30 workers on one key from being banned', async () => {
    const { api, keyId, ended } = await startWorkers('obey', 5)
    expect(await ended).to.include({ exitCode: 0, stdout: 'done\n', stderr: '' })
    expect(await readBans(api, keyId)).to.deep.equal({ banLevel: 0, strikes: 0 })
  })

  it('are needed: 30 workers that ignore Retry-After are banned despite exponential backoff', async () => {
    const { api, keyId } = await startWorkers('ignore', 60)
    await until('the key is banned', async () => (await readBans(api, keyId)).banLevel === 1, 40_000)
  })

  async function start(plan: PlanName, { limits, secondsToMinuteEnd, ...options }: StartOptions): Promise<Started> {
    const clock = new RunningClock()
    const api = await startApi({ clock, ...options })
    apis.push(api)
    const { key, secret } = await api.issueKey(plan, limits ? { limits } : {})
    clock.moveBeforeMinuteEnd(key.keyId, secondsToMinuteEnd)
    return { api, clock, keyId: key.keyId, secret, env: { API_KEY: secret, PETSTORE_URL: api.url } }
  }

  /** The first request gets 503. Then another client uses up the minute of the key. */
  async function retry({ name, language }: Client) {
    const pets = new UnreliablePetStore()
    pets.failure = new StoreUnavailable('The test')
    const limits = { minute: 1, day: 100 }
    const { api, clock, secret, env } = await start('enterprise', { limits, secondsToMinuteEnd: SECONDS_TO_MINUTE_END, doubles: { pets } })
    const statuses: number[] = []
    const arrivedAtMs: number[] = []
    const recorder = (request: IncomingMessage, response: ServerResponse) => {
      if (request.method !== 'POST') return
      // The second request gets 429. If the clock started after that, it would run behind the client's clock.
      if (arrivedAtMs.push(performance.now()) === 2) clock.start()
      response.on('finish', () => {
        pets.failure = undefined
        if (statuses.push(response.statusCode) === 1) usedUp = api.send('/v1/store/orders', { key: secret })
      })
    }
    let usedUp: Promise<TestResponse> | undefined
    api.server.prependListener('request', recorder)
    const ended = await run(name, language, readBlocks(PAGE, name, language).join(''), env)
    expect(await usedUp, name).to.include({ status: 200 })
    const waitsMs = arrivedAtMs.slice(1).map((ms, index) => ms - (arrivedAtMs[index] ?? 0))
    return { ...ended, statuses, waitsMs, pets: (await pets.list({ limit: 100 })).length }
  }

  async function startWorkers(retryAfter: 'ignore' | 'obey', secondsToMinuteEnd: number) {
    const started = await start('enterprise', { limits: { minute: WORKER_COUNT, day: 1_000 }, secondsToMinuteEnd })
    const { api, clock, secret: key } = started
    for (let sent = 0; sent < WORKER_COUNT; sent++) await api.send('/v1/pets', { key })
    clock.start()
    return { ...started, ended: run(retryAfter, 'python', WORKERS, started.env, [retryAfter]) }
  }

  async function run(name: string, language: Client['language'], code: string, env: NodeJS.ProcessEnv, args: readonly string[] = []) {
    if (!opened.tools) throw new Error('The client tools are not open')
    const { program, prepare, extension } = LANGUAGES[language]
    const file = `retry-${name}.${extension}`
    writeFileSync(join(opened.tools.folder, file), code)
    for (const command of prepare) await opened.tools.runScript(command)
    return opened.tools.run(program[0], [...program.slice(1), file, ...args], env)
  }
})

async function readBans({ parts }: TestApi, keyId: string) {
  const { banLevel, strikes } = (await parts.apiKeyAdmin.showUsage(keyId)).usage
  return { banLevel, strikes }
}
