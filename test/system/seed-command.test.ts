import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { expect } from 'chai'
import type { Db } from 'mongodb'
import { makeSeed } from '../../src/core/use-cases/seed.js'
import { runProgram } from '../support/command-line.js'
import { findLink } from '../support/responses.js'
import type { RedisDatabase } from '../support/engines/redis-engine.js'
import { aRedisDatabase } from '../support/engines/redis-engine.js'
import type { MongoDatabase } from '../support/engines/mongo-engine.js'
import { aMongoDatabase } from '../support/engines/mongo-engine.js'
import { MemorySeedStore } from '../support/memory-seed-store.js'
import { MongoData } from '../support/mongo-data.js'
import { endProcesses, issueKey, PETSTORE, runPetstore, runPetstoreJson, startService } from '../support/process.js'
import { until, within } from '../support/until.js'

interface Added {
  readonly petsAdded: number
  readonly ordersAdded: number
}

describe('petstore seed', function () {
  this.timeout(60_000)
  let database: MongoDatabase
  let redis: RedisDatabase
  let data: MongoData
  let db: Db

  before(async function () {
    database = await aMongoDatabase(this)
    redis = await aRedisDatabase(this)
    data = await MongoData.withIndexes(database.url)
    db = data.connect()
  })
  beforeEach(() => data.empty())
  afterEach(endProcesses)
  after(async () => {
    await data?.close()
    await database?.drop()
    await redis?.release()
  })

  const settings = () => ({ MONGODB_URL: database.url, REDIS_URL: redis.url })
  const seed = (pets: number, orders: number) => runPetstoreJson<Added>(['seed', '--pets', `${pets}`, '--orders', `${orders}`], settings())

  async function totals(): Promise<[number, number]> {
    return [await db.collection('pets').countDocuments(), await db.collection('orders').countDocuments()]
  }

  it('fills up to the numbers; again it adds nothing, with greater ones the rest, and with smaller ones it takes nothing away', async () => {
    expect(await seed(0, 0)).to.deep.equal({ petsAdded: 0, ordersAdded: 0 })
    expect(await seed(1_200, 30)).to.deep.equal({ petsAdded: 1_200, ordersAdded: 30 })
    expect(await seed(1_200, 30)).to.deep.equal({ petsAdded: 0, ordersAdded: 0 })
    expect(await seed(1_250, 1_030)).to.deep.equal({ petsAdded: 50, ordersAdded: 1_000 })
    expect(await seed(1, 0)).to.deep.equal({ petsAdded: 0, ordersAdded: 0 })
    expect(await totals()).to.deep.equal([1_250, 1_030])
  })

  it('without numbers makes 1,000 pets and 100 orders, tells people in a sentence, and draws nothing where there is no terminal', async () => {
    const ended = await runPetstore(['seed'], settings())
    expect(ended).to.deep.equal({ exitCode: 0, stdout: 'Added 1000 pets and 100 orders.\n', stderr: '' })
    expect(await totals()).to.deep.equal([1_000, 100])
  })

  it('gives ids from 1 without a gap, in which the API lists all of it', async () => {
    await seed(230, 120)
    const service = await startService({ ...settings(), CURSOR_SECRET: 'x'.repeat(32), TRUSTED_PROXY_HOPS: '0' })
    const { key } = await issueKey(settings())
    for (const [path, count] of [
      ['/v1/pets', 230],
      ['/v1/store/orders', 120],
    ] as const) {
      const ids: number[] = []
      for (let page: string | undefined = `${path}?limit=100`; page !== undefined; ) {
        const answer = await service.send(page, { key })
        expect(answer.status).to.equal(200)
        ids.push(...(answer.json as { id: number }[]).map(({ id }) => id))
        page = findLink('next', answer)
      }
      expect(ids).to.deep.equal(Array.from({ length: count }, (_, index) => index + 1))
    }
  })

  it('keeps out of the way of pets that the service makes, before and after', async () => {
    const service = await startService({ ...settings(), CURSOR_SECRET: 'x'.repeat(32), TRUSTED_PROXY_HOPS: '0' })
    const { key } = await issueKey(settings())
    const create = async () => {
      const { status, json } = await service.send('/v1/pets', { key, method: 'POST', body: { name: 'Own', categoryId: 1 } })
      expect(status).to.equal(201)
      return (json as { id: number }).id
    }
    const before = await create()
    expect(await seed(300, 0)).to.deep.equal({ petsAdded: 299, ordersAdded: 0 })
    const after = [await create(), await create()]
    expect(await totals()).to.deep.equal([302, 0])
    expect(new Set([before, ...after]).size).to.equal(3)
  })

  it('that was killed in the middle is completed by the next run, to the exact numbers', async () => {
    const child = spawn(process.execPath, [PETSTORE, 'seed', '--pets', '200000', '--orders', '10'], { env: settings(), stdio: 'ignore' })
    try {
      const exit = once(child, 'exit')
      await until('a part of the pets is there', async () => (await totals())[0] > 5_000, 30_000)
      child.kill('SIGKILL')
      expect(await exit).to.deep.equal([null, 'SIGKILL'])
    } finally {
      child.kill('SIGKILL')
    }
    const [pets, orders] = await totals()
    expect([pets < 200_000, orders]).to.deep.equal([true, 0])

    // Not all the way to 200,000: what lies beyond a few batches would show nothing more.
    const target = pets + 2_500
    const { petsAdded, ordersAdded } = await seed(target, 10)
    expect(petsAdded).to.be.within(1, 2_500)
    expect(ordersAdded).to.equal(10)
    expect(await totals()).to.deep.equal([target, 10])
  })
})

describe('petstore seed, on a terminal', () => {
  it('draws a bar while it works, and leaves nothing of it behind when it is done', async () => {
    const drawn = await seedOn(aTerminal(), new MemorySeedStore(), 3_000)
    expect(drawn).to.include('0% | 0 of 3010').and.include('100% | 3010 of 3010')
    expect(lastLineOf(drawn)).to.equal('')
  })

  it('draws nothing when there is nothing to do', async () => {
    expect(await seedOn(aTerminal(), new MemorySeedStore(), 0, 0)).to.equal('')
  })

  it('takes the bar away before it says why it failed', async () => {
    const terminal = aTerminal()
    const failure = new Error('away')
    const store = new FailingSeedStore(failure)
    const reason = await seedOn(terminal, store, 3_000).catch((error: unknown) => error)
    expect(reason).to.equal(failure)
    const drawn = terminal.text()
    expect(drawn).to.include('of 3010')
    expect(lastLineOf(drawn)).to.equal('')
  })

  it('changes no setting of the terminal that a Ctrl-C would leave changed', async () => {
    const drawn = await seedOn(aTerminal(), new MemorySeedStore(), 3_000)
    expect(drawn).to.not.include('\u001B[?')
  })

  it('draws nothing where there is no terminal', async () => {
    expect(await seedOn(aTerminal({ isTTY: false }), new MemorySeedStore(), 3_000)).to.equal('')
  })
})

describe('petstore seed, refused', function () {
  this.timeout(30_000)
  afterEach(endProcesses)

  for (const [what, args, problem] of [
    ['a number of pets that is none', ['--pets', '1e6'], "option '--pets <n>' argument '1e6' is invalid"],
    ['a negative number', ['--orders', '-1'], "option '--orders <n>' argument '-1' is invalid"],
    ['a number that is too great', ['--pets', '100000001'], 'a whole number from 0 to 100000000'],
    ['an option without its number', ['--pets'], 'argument missing'],
    ['a number without its option', ['1000'], 'too many arguments'],
    ['an unknown option', ['--cats', '5'], "unknown option '--cats'"],
  ] satisfies [string, string[], string][]) {
    it(`for ${what} says so and how it is used, and does nothing`, async () => {
      const ended = await runProgram(['seed', ...args])
      expect(ended).to.include({ usage: 'wrong', stdout: '' })
      expect(ended.stderr).to.include(problem).and.include('Usage: petstore seed')
    })
  }

  it('for wrong usage ends with 2', async () => {
    expect(await runPetstore(['seed', '--pets', 'many'])).to.include({ exitCode: 2, stdout: '' })
  })

  it('without MONGODB_URL ends with 1, in one sentence that names it', async () => {
    const ended = await runPetstore(['seed'])
    expect(ended).to.include({ exitCode: 1, stdout: '' })
    expect(ended.stderr).to.match(/^[^\n]*\bset MONGODB_URL\b[^\n]*\n$/)
  })

  it('while MongoDB is away ends with 1 within seconds, in one sentence without the password', async () => {
    const away = runPetstore(['seed'], { MONGODB_URL: 'mongodb://petstore:hunter2@127.0.0.1:1/petstore', REDIS_URL: 'redis://127.0.0.1:1' })
    const ended = await within(6_000, 'the rejection', away)
    expect(ended).to.include({ exitCode: 1, stdout: '' })
    expect(ended.stderr)
      .to.match(/^MongoDB could not be reached[^\n]*\n$/)
      .and.not.include('hunter2')
  })
})

describe('petstore seed --help', () => {
  it('tells a stranger all of it', async () => {
    const { stdout, ...rest } = await runProgram(['seed', '--help'])
    expect(rest).to.deep.equal({ usage: 'right', stderr: '' })
    const mentions = [
      'Usage: petstore seed',
      '--pets',
      'default: 1000',
      '--orders',
      'default: 100',
      '--json',
      'safe to repeat',
      'MONGODB_URL',
      'Exit codes:',
    ]
    for (const mention of mentions) expect(stdout.replace(/\s+/g, ' ')).to.include(mention)
  })
})

class FailingSeedStore extends MemorySeedStore {
  constructor(private readonly failure: Error) {
    super()
  }

  override async addOrders(): Promise<void> {
    throw this.failure
  }
}

type Terminal = NodeJS.WriteStream & { text(): string }

/** What is written there can be read; nothing shows it. */
function aTerminal({ isTTY = true } = {}): Terminal {
  const chunks: string[] = []
  const stream = new PassThrough().setEncoding('utf8').on('data', (chunk: string) => chunks.push(chunk))
  const text = () => chunks.join('')
  return Object.assign(stream, { isTTY, columns: 100, text, getWindowSize: () => [100, 30] }) as unknown as Terminal
}

/** Resolves to what was drawn. */
async function seedOn(terminal: Terminal, seedStore: MemorySeedStore, pets: number, orders = 10): Promise<string> {
  const { stdout } = await runProgram(['seed', '--pets', `${pets}`, '--orders', `${orders}`], {
    withSeed: (work) => work(makeSeed({ seedStore, pets: seedStore.pets })),
    progressTo: terminal,
  })
  expect(stdout).to.equal(`Added ${pets} pets and ${orders} orders.\n`)
  return terminal.text()
}

/** What a person sees of the last line: that which comes after it was last cleared. */
function lastLineOf(drawn: string): string {
  return drawn.slice(drawn.lastIndexOf('\u001B[2K') + '\u001B[2K'.length)
}
