import { userInfo } from 'node:os'
import { expect } from 'chai'
import { MongoConnection } from '../../src/adapters/mongo/mongo-connection.js'
import { useDatabases } from '../support/engines/use-databases.js'
import type { Ended, Settings } from '../support/process.js'
import { endProcesses, runPetstore } from '../support/process.js'
import { within } from '../support/until.js'

// The options and output of each command are tested in test/adapters/cli, without a process for each.
describe('petstore keys', function () {
  this.timeout(60_000)
  after(endProcesses)
  const databases = useDatabases()
  let settings: Settings

  before(() => {
    settings = { MONGODB_URL: databases.mongo.url, REDIS_URL: databases.redis.url }
  })

  const run = (...args: string[]) => runPetstore(['keys', ...args], settings)

  async function printJson<Result>(...args: string[]): Promise<Result> {
    const { stdout, exitCode, stderr } = await run(...args, '--json')
    expect(exitCode, stderr).to.equal(0)
    return JSON.parse(stdout) as Result
  }

  it('rotates, changes and revokes a key on MongoDB and Redis, and lists the changes with the user who runs the command', async () => {
    const { keyId } = await printJson<{ keyId: string }>('issue', '--plan', 'free', '--owner', 'Acme')
    expect(await printJson('rotate', keyId))
      .to.include({ keyId, takesEffect: 'at once' })
      .and.have.property('oldSecret')
    expect(await printJson('rotate', keyId, '--finish'))
      .to.include({ keyId, takesEffect: 'at once' })
      .and.not.have.property('oldSecret')
    expect(await printJson('plan', keyId, 'pro', '--by', 'bob')).to.include({ plan: 'pro', takesEffect: 'at once' })
    expect(await printJson('usage', keyId)).to.include({ keyId, strikes: 0 })
    expect(await printJson('unban', keyId)).to.deep.equal({ keyId, outcome: 'not-banned' })
    expect(await printJson('revoke', keyId)).to.include({ state: 'revoked', takesEffect: 'at once' })
    const listed = await printJson<{ keyId: string; state: string; plan: string }[]>('list', '--owner', 'Acme')
    expect(listed.find((key) => key.keyId === keyId)).to.include({ state: 'revoked', plan: 'pro' })
    const { username } = userInfo()
    const changes = await printJson<{ action: string; by: string }[]>('history', keyId)
    expect(changes.map(({ action, by }) => [action, by])).to.deep.equal([
      ['issued', username],
      ['rotated', username],
      ['rotation-finished', username],
      ['plan-changed', 'bob'],
      ['unbanned', username],
      ['revoked', username],
    ])
  })

  it('stores no secret in MongoDB', async () => {
    const { keyId, key } = await printJson<{ keyId: string; key: string }>('issue', '--plan', 'free', '--owner', 'Acme')
    const connection = new MongoConnection(databases.mongo.url)
    const stored = await connection.db.collection<{ _id: string }>('apiKeys').findOne({ _id: keyId })
    await connection.close()
    expect(stored).to.be.an('object')
    expect(JSON.stringify(stored)).to.not.include(key.slice(9, 39))
  })

  it('exits with 1 and one sentence if a key does not exist or is revoked, and with 2 if enterprise has no limits', async () => {
    expectFailure(await run('show', 'key_nope'), /^No API key has the ID key_nope\n$/)
    const { keyId } = await printJson<{ keyId: string }>('issue', '--plan', 'free', '--owner', 'Acme')
    await printJson('revoke', keyId)
    expectFailure(await run('plan', keyId, 'pro'), /^API key key_\w+ is revoked, so its plan cannot be changed\n$/)

    const ended = await run('issue', '--plan', 'enterprise', '--owner', 'Acme')
    expect(ended).to.include({ exitCode: 2, stdout: '' })
    expect(ended.stderr).to.match(/^error: Plan enterprise requires limits/)
  })
})

describe('petstore keys without MongoDB', function () {
  this.timeout(30_000)
  after(endProcesses)

  it('exits with 2 on invalid usage and with 0 for help, whatever the settings', async () => {
    const settings = { MONGODB_URL: 'nonsense', REDIS_URL: 'nonsense' }
    for (const args of [[], ['issue', '--plan', 'gold', '--owner', 'Acme']]) {
      const ended = await runPetstore(['keys', ...args], settings)
      expect(ended).to.include({ exitCode: 2, stdout: '' })
      expect(ended.stderr).to.include('--help')
    }
    const help = await runPetstore(['keys', 'issue', '--help'], settings)
    expect(help).to.include({ exitCode: 0, stderr: '' })
    expect(help.stdout).to.include('Usage: petstore keys issue')
  })

  it('exits with 2 and one sentence that names the missing settings', async () => {
    for (const args of [
      ['keys', 'list'],
      ['keys', 'revoke', 'key_nope'],
      ['seed', '--pets', '1'],
    ]) {
      const ended = await runPetstore(args)
      expect(ended).to.include({ exitCode: 2, stdout: '' })
      expect(ended.stderr).to.match(/^petstore (keys|seed) requires shared storage: set MONGODB_URL and REDIS_URL[^\n]*\n$/)
    }
  })

  it('exits with 1 within seconds if MongoDB is unavailable, with one sentence without the password', async () => {
    const MONGODB_URL = 'mongodb://petstore:hunter2@127.0.0.1:1/petstore'
    const run = runPetstore(['keys', 'list'], { MONGODB_URL, REDIS_URL: 'redis://127.0.0.1:1' })
    expectFailure(await within(6_000, 'the command fails', run), /^MongoDB is unavailable(?!.*hunter2)[^\n]*\n$/)
  })

  for (const url of [
    'petstore:hunter2@db/petstore',
    'mongodb://petstore:hunter2@',
    'mongodb://petstore:hunter2/x@db/petstore',
    'mongodb://petstore:hunter2@db/petstore?password=hunter2',
  ]) {
    it(`exits with 2 and an error without the password for the MONGODB_URL ${url}`, async () => {
      const ended = await runPetstore(['keys', 'list'], { MONGODB_URL: url, REDIS_URL: 'redis://127.0.0.1:1' })
      expect(ended).to.include({ exitCode: 2, stdout: '' })
      expect(ended.stderr).to.include('MONGODB_URL').and.not.include('hunter2').and.not.include('    at ')
    })
  }
})

function expectFailure(ended: Ended, message: RegExp): void {
  expect(ended).to.include({ exitCode: 1, stdout: '' })
  expect(ended.stderr).to.match(message)
}
