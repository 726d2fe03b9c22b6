import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { expect } from 'chai'
import type { Db } from 'mongodb'
import { makeSeed } from '../../src/core/use-cases/seed.js'
import { runProgram } from '../support/command-line.js'
import { useDatabases } from '../support/engines/use-databases.js'
import { MemorySeedStore } from '../support/memory-seed-store.js'
import { MongoData } from '../support/mongo-data.js'
import { endProcesses, PETSTORE, runPetstore, runPetstoreJson } from '../support/process.js'
import { until } from '../support/until.js'

interface Added {
  readonly petsAdded: number
  readonly ordersAdded: number
}

describe('petstore seed', function () {
  this.timeout(60_000)
  let data: MongoData
  let db: Db

  after(() => data?.close())
  const databases = useDatabases()
  before(async () => {
    data = await MongoData.withIndexes(databases.mongo.url)
    ;({ db } = data.connect())
  })
  beforeEach(() => data.empty())
  afterEach(endProcesses)

  const settings = () => ({ MONGODB_URL: databases.mongo.url, REDIS_URL: databases.redis.url })
  const seed = (pets: number, orders: number) => runPetstoreJson<Added>(['seed', '--pets', `${pets}`, '--orders', `${orders}`], settings())

  async function totals(): Promise<[number, number]> {
    return [await db.collection('pets').countDocuments(), await db.collection('orders').countDocuments()]
  }

  it('adds only the missing rows and never removes any', async () => {
    expect(await seed(0, 0)).to.deep.equal({ petsAdded: 0, ordersAdded: 0 })
    expect(await seed(1_200, 30)).to.deep.equal({ petsAdded: 1_200, ordersAdded: 30 })
    expect(await seed(1_200, 30)).to.deep.equal({ petsAdded: 0, ordersAdded: 0 })
    expect(await seed(1_250, 1_030)).to.deep.equal({ petsAdded: 50, ordersAdded: 1_000 })
    expect(await seed(1, 0)).to.deep.equal({ petsAdded: 0, ordersAdded: 0 })
    expect(await totals()).to.deep.equal([1_250, 1_030])
  })

  it('adds 1,000 pets and 100 orders by default, prints one sentence, and shows no progress bar without a terminal', async () => {
    const ended = await runPetstore(['seed'], settings())
    expect(ended).to.deep.equal({ exitCode: 0, stdout: 'Added 1000 pets and 100 orders.\n', stderr: '' })
    expect(await totals()).to.deep.equal([1_000, 100])
  })

  it('is completed exactly by the next run after it was killed', async () => {
    const child = spawn(process.execPath, [PETSTORE, 'seed', '--pets', '200000', '--orders', '10'], { env: settings(), stdio: 'ignore' })
    try {
      const exit = once(child, 'exit')
      await until('a part of the pets is stored', async () => (await totals())[0] > 5_000, 30_000)
      child.kill('SIGKILL')
      expect(await exit).to.deep.equal([null, 'SIGKILL'])
    } finally {
      child.kill('SIGKILL')
    }
    const [pets, orders] = await totals()
    expect([pets < 200_000, orders]).to.deep.equal([true, 0])

    // A few batches are enough for this test.
    const target = pets + 2_500
    const { petsAdded, ordersAdded } = await seed(target, 10)
    expect(petsAdded).to.be.within(1, 2_500)
    expect(ordersAdded).to.equal(10)
    expect(await totals()).to.deep.equal([target, 10])
  })
})

describe('petstore seed on a terminal', () => {
  it('shows a progress bar and clears it at the end', async () => {
    const written = await seedOn(aTerminal(), new MemorySeedStore(), 3_000)
    expect(written).to.include('0% | 0 of 3010').and.include('100% | 3010 of 3010')
    expect(getLastLine(written)).to.equal('')
  })

  it('shows no progress bar if there is nothing to add', async () => {
    expect(await seedOn(aTerminal(), new MemorySeedStore(), 0, 0)).to.equal('')
  })

  it('clears the progress bar before an error', async () => {
    const terminal = aTerminal()
    const failure = new Error('down')
    const store = new FailingSeedStore(failure)
    const reason = await seedOn(terminal, store, 3_000).catch((error: unknown) => error)
    expect(reason).to.equal(failure)
    const written = terminal.text()
    expect(written).to.include('of 3010')
    expect(getLastLine(written)).to.equal('')
  })

  it('changes no terminal mode, which would stay changed after Ctrl-C', async () => {
    const written = await seedOn(aTerminal(), new MemorySeedStore(), 3_000)
    expect(written).to.not.include('\u001B[?')
  })

  it('shows no progress bar without a terminal', async () => {
    expect(await seedOn(aTerminal({ isTTY: false }), new MemorySeedStore(), 3_000)).to.equal('')
  })
})

describe('petstore seed with invalid usage', () => {
  for (const [what, args, problem] of [
    ['not a number', ['--pets', '1e6'], "option '--pets <n>' argument '1e6' is invalid"],
    ['a negative number', ['--orders', '-1'], "option '--orders <n>' argument '-1' is invalid"],
    ['a number that is too large', ['--pets', '100000001'], 'a whole number from 0 to 100000000'],
    ['an option without its number', ['--pets'], 'argument missing'],
    ['a number without its option', ['1000'], 'too many arguments'],
    ['an unknown option', ['--cats', '5'], "unknown option '--cats'"],
  ] satisfies [string, string[], string][]) {
    it(`prints the error and points to --help, and does nothing: ${what}`, async () => {
      const ended = await runProgram(['seed', ...args])
      expect(ended).to.include({ usage: 'wrong', stdout: '' })
      expect(ended.stderr).to.include(problem).and.include('(see petstore seed --help)')
    })
  }
})

describe('petstore seed --help', () => {
  it('explains every option', async () => {
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

/** A terminal that records what is written to it. */
function aTerminal({ isTTY = true } = {}): Terminal {
  const chunks: string[] = []
  const stream = new PassThrough().setEncoding('utf8').on('data', (chunk: string) => chunks.push(chunk))
  const text = () => chunks.join('')
  return Object.assign(stream, { isTTY, columns: 100, text, getWindowSize: () => [100, 30] }) as unknown as Terminal
}

/** Returns everything that was written to the terminal. */
async function seedOn(terminal: Terminal, seedStore: MemorySeedStore, pets: number, orders = 10): Promise<string> {
  const { stdout } = await runProgram(['seed', '--pets', `${pets}`, '--orders', `${orders}`], {
    withSeed: (work) => work(makeSeed({ seedStore, pets: seedStore.pets })),
    progressStream: terminal,
  })
  expect(stdout).to.equal(`Added ${pets} pets and ${orders} orders.\n`)
  return terminal.text()
}

/** The visible part of the last line: the text after it was last cleared. */
function getLastLine(written: string): string {
  return written.slice(written.lastIndexOf('\u001B[2K') + '\u001B[2K'.length)
}
