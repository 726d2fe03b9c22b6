import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { ImageNames } from '../support/engines/engine-settings.js'
import { engineSettings } from '../support/engines/engine-settings.js'
import { homeMadeImage, isHomeMade, SCRIPTS } from '../support/engines/home-made-image.js'
import type { Allowed } from '../support/engines/image-steps.js'
import { imageSteps } from '../support/engines/image-steps.js'
import { missingPackages, whyNoSetUp } from '../support/engines/machine.js'
import { pingMongo } from '../support/engines/mongo-client.js'
import { initiateReplicaSet, mongoReplicaSet } from '../support/engines/mongo-replica-set.js'
import { withDatabase } from '../support/engines/mongo-url.js'
import { EngineFailed, firstOf, NoEngine } from '../support/engines/no-engine.js'
import { untilItAnswers } from '../support/engines/own-engine.js'
import { isGone, runningPid, stampOf } from '../support/engines/process-stamp.js'
import { withDatabaseNumber } from '../support/engines/redis-engine.js'
import { withPatience } from '../support/engines/with-patience.js'
import { helloOf, isHello, startMongoStub } from '../support/mongo-stub.js'

describe('the settings of the engines', () => {
  it('come from the environment, each from its own variable', () => {
    const env = {
      MONGODB_URL: 'mongodb://m',
      REDIS_URL: 'redis://r',
      MONGODB_IMAGE: 'mongo:7',
      REDIS_IMAGE: 'redis:8',
      ENGINES: 'found-only',
    }
    const settings = engineSettings(env)
    expect(settings).to.deep.include({ mongodbUrl: 'mongodb://m', redisUrl: 'redis://r', foundOnly: true })
    expect(settings.mongodbImage.configured).to.equal('mongo:7')
    expect(settings.redisImage.configured).to.equal('redis:8')
  })

  it('are the official images, and setting up, where the environment says nothing', () => {
    for (const env of [{}, { MONGODB_URL: '', REDIS_URL: '', MONGODB_IMAGE: '', REDIS_IMAGE: '', ENGINES: '' }]) {
      const settings = engineSettings(env)
      expect(settings).to.deep.include({ mongodbUrl: undefined, redisUrl: undefined, foundOnly: false })
      expect(settings.mongodbImage).to.include({ configured: undefined, official: 'mongo:8' })
      expect(settings.redisImage).to.include({ configured: undefined, official: 'redis:7' })
    }
  })

  it('refuse what ENGINES cannot mean', () => {
    expect(() => engineSettings({ ENGINES: 'found_only' })).to.throw('ENGINES=found_only')
  })
})

describe('the image of an engine', () => {
  const names = { configured: undefined, official: 'mongo:8' }
  const anything = { pull: true, make: true }
  const nothing = { pull: false, make: false }
  const ways = (of: ImageNames, allowed: Allowed, homeMade: string | undefined = 'made:1') =>
    imageSteps(of, homeMade, allowed).map(({ way, image }) => `${way} ${image}`)

  it('is looked for on the machine, the official one first, before anything is pulled or made', () => {
    expect(ways(names, anything)).to.deep.equal(['here mongo:8', 'here made:1', 'pull mongo:8', 'make made:1'])
  })

  it('is neither pulled nor made where that is not allowed', () => {
    expect(ways(names, nothing)).to.deep.equal(['here mongo:8', 'here made:1'])
    expect(ways(names, { pull: true, make: false })).to.deep.equal(['here mongo:8', 'here made:1', 'pull mongo:8'])
  })

  it('is not replaced by another one when it is asked for by name', () => {
    expect(ways({ ...names, configured: 'mongo:7' }, anything)).to.deep.equal(['here mongo:7', 'pull mongo:7'])
    expect(ways({ ...names, configured: 'mongo:7' }, nothing)).to.deep.equal(['here mongo:7'])
  })

  it('is not made where something that goes into it is missing', () => {
    expect(imageSteps(names, undefined, anything).map(({ way }) => way)).to.deep.equal(['here', 'pull'])
  })

  describe('that is home-made', () => {
    let folder: string
    let script: string
    let ingredient: string

    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), 'petstore-recipe-'))
      script = join(folder, 'engine-image.sh')
      ingredient = join(folder, 'entrypoint.sh')
      writeFileSync(script, 'echo made')
      writeFileSync(ingredient, 'echo started')
    })

    afterEach(() => rmSync(folder, { recursive: true }))

    it('has a name that changes with its recipe and with everything that goes into it, and only with these', () => {
      const before = homeMadeImage(script, ingredient)
      expect(before).to.match(/^petstore-test\/engine:[0-9a-f]{12}$/)
      expect(homeMadeImage(script, ingredient)).to.equal(before)
      writeFileSync(ingredient, 'echo started differently')
      const afterwards = homeMadeImage(script, ingredient)
      writeFileSync(script, 'echo made differently')
      expect(new Set([before, afterwards, homeMadeImage(script, ingredient)])).to.have.property('size', 3)
    })

    it('is told from every other image by its name', () => {
      expect(isHomeMade(homeMadeImage(script))).to.equal(true)
      expect(isHomeMade('mongo:8')).to.equal(false)
    })
  })
})

describe('the entry point of the MongoDB-wire image', () => {
  const PROGRAMS = ['postgres', 'psql', 'ferretdb', 'rm', 'sleep']
  let folder: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'petstore-programs-'))
    for (const program of PROGRAMS) writeFileSync(join(folder, program), '#!/bin/sh\nexit 0\n', { mode: 0o755 })
  })

  afterEach(() => rmSync(folder, { recursive: true }))

  const start = () =>
    spawnSync('/bin/sh', [join(SCRIPTS, 'mongodb-wire-entrypoint.sh')], { env: { PATH: folder }, encoding: 'utf8', timeout: 5_000 })

  for (const program of PROGRAMS) {
    it(`ends at once and names the missing program: ${program}`, () => {
      rmSync(join(folder, program))
      expect(start()).to.include({ status: 1, stderr: `mongodb-wire: cannot start without these programs: ${program}\n` })
    })
  }

  it('names every program that is missing or not executable', () => {
    rmSync(join(folder, 'ferretdb'))
    chmodSync(join(folder, 'psql'), 0o644)
    expect(start()).to.include({ status: 1, stderr: 'mongodb-wire: cannot start without these programs: psql ferretdb\n' })
  })
})

describe('a mongod', () => {
  it('is started as a member of a replica set, on one port inside its container and outside', () => {
    const command = mongoReplicaSet.command(15_017, [])
    expect(command.join(' '))
      .to.match(/--replSet petstore\b/)
      .and.to.match(/--port 15017\b/)
    expect(mongoReplicaSet.innerPort(15_017)).to.equal(15_017)
  })

  it('gets a replica set of itself alone, and answers once it is primary, to a driver that was told nothing of the set', async () => {
    let helloesLeft = 3
    let member: string | undefined
    const states = { new: { isreplicaset: true }, elected: { setName: 'petstore', setVersion: 1 } }
    const stub = await startMongoStub((command) => {
      if ('replSetInitiate' in command) member = command['replSetInitiate'].members[0].host
      if (!isHello(command)) return {}
      if (member === undefined) return helloOf({ ...states.new, isWritablePrimary: false, ismaster: false })
      const isPrimary = --helloesLeft < 0
      return helloOf({
        ...states.elected,
        hosts: [member],
        me: member,
        isWritablePrimary: isPrimary,
        ismaster: isPrimary,
        secondary: !isPrimary,
      })
    })
    try {
      await initiateReplicaSet('127.0.0.1', stub.port)
      await untilItAnswers(`mongodb://127.0.0.1:${stub.port}`, pingMongo)
      const members = [{ _id: 0, host: `127.0.0.1:${stub.port}` }]
      expect(stub.received('replSetInitiate').map(({ replSetInitiate }) => replSetInitiate)).to.deep.equal([{ _id: 'petstore', members }])
      expect(helloesLeft).to.be.lessThan(0)
    } finally {
      await stub.close()
    }
  })
})

describe('the set-up of a machine', () => {
  const machine = { isRoot: true, isDebian: true }

  it('is for root on Debian, unless ENGINES=found-only', () => {
    expect(whyNoSetUp({ foundOnly: false }, machine)).to.equal(undefined)
    expect(whyNoSetUp({ foundOnly: true }, machine)).to.include('ENGINES=found-only')
    expect(whyNoSetUp({ foundOnly: false }, { ...machine, isRoot: false })).to.include('root')
    expect(whyNoSetUp({ foundOnly: false }, { ...machine, isDebian: false })).to.include('Debian')
  })

  it('installs what is missing, and no dockerd where a Docker answers', () => {
    expect(missingPackages(() => false, false)).to.deep.equal(['docker.io', 'debootstrap', 'redis-server', 'curl'])
    expect(missingPackages(() => false, true)).to.deep.equal(['debootstrap', 'redis-server', 'curl'])
    expect(missingPackages((program) => program === 'redis-server', false)).to.deep.equal(['docker.io', 'debootstrap', 'curl'])
    expect(missingPackages(() => true, false)).to.deep.equal([])
  })
})

describe('the attempts to find an engine', () => {
  const missing = (reason: string) => async () => Promise.reject(new NoEngine([reason]))

  it('end with the first that succeeds', async () => {
    const rest = async () => Promise.reject(new Error('not to be tried'))
    expect(await firstOf([missing('no Docker'), async () => 'found', rest])).to.equal('found')
  })

  it('give each reason once when all fail', async () => {
    const attempts = firstOf([missing('no Docker'), missing('no program'), missing('no Docker')])
    expect(await attempts.catch((error: unknown) => error)).to.include({ message: 'no Docker; no program' })
  })

  it('end with an engine that does not start: no other one hides it', async () => {
    const broken = async () => Promise.reject(new EngineFailed('broken'))
    expect(await firstOf([broken, async () => 'found']).catch((error: unknown) => error)).to.include({ message: 'broken' })
  })
})

describe('the wait for an engine', function () {
  this.timeout(100)

  it('does not count as time that a hook or test takes', async function () {
    const longer = async () => new Promise((resolve) => setTimeout(resolve, 200, 'found'))
    expect(await withPatience(this, longer)).to.equal('found')
  })

  it('leaves a limit for the rest', async function () {
    await withPatience(this, async () => undefined)
    expect(this.timeout()).to.be.within(100, 200)
  })
})

describe('the database in a URL', () => {
  it('of MongoDB is replaced, and the servers and options are kept', () => {
    expect(withDatabase('mongodb://a', 'mine')).to.equal('mongodb://a/mine')
    expect(withDatabase('mongodb://a:1/theirs', 'mine')).to.equal('mongodb://a:1/mine')
    expect(withDatabase('mongodb://a:1,b:2/?replicaSet=rs', 'mine')).to.equal('mongodb://a:1,b:2/mine?replicaSet=rs')
    expect(withDatabase('mongodb+srv://a/theirs?tls=true&w=majority', 'mine')).to.equal('mongodb+srv://a/mine?tls=true&w=majority')
    expect(withDatabase('mongodb://a?w=1', 'mine')).to.equal('mongodb://a/mine?w=1')
  })

  it('of MongoDB does not change where a user logs in', () => {
    expect(withDatabase('mongodb://u:p@a', 'mine')).to.equal('mongodb://u:p@a/mine?authSource=admin')
    expect(withDatabase('mongodb://u:p@a/theirs?w=1', 'mine')).to.equal('mongodb://u:p@a/mine?w=1&authSource=theirs')
    expect(withDatabase('mongodb://u:p@a/theirs?authSource=x', 'mine')).to.equal('mongodb://u:p@a/mine?authSource=x')
    expect(withDatabase('mongodb://u@a/?authMechanism=MONGODB-X509', 'mine')).to.equal('mongodb://u@a/mine?authMechanism=MONGODB-X509')
  })

  it('of Redis is a number, and the rest is kept', () => {
    expect(withDatabaseNumber('redis://a', 3)).to.equal('redis://a/3')
    expect(withDatabaseNumber('rediss://u:p@a:1/0?family=6', 15)).to.equal('rediss://u:p@a:1/15?family=6')
  })
})

describe('the stamp of a process', () => {
  it('tells while the process runs that it is there', () => {
    const stamp = stampOf(process.pid) ?? ''
    expect(isGone(stamp)).to.equal(false)
    expect(runningPid(stamp)).to.equal(process.pid)
  })

  it('tells when it has ended that it is gone', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
    const stamp = stampOf(child.pid ?? 0) ?? ''
    expect(isGone(stamp)).to.equal(false)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(isGone(stamp)).to.equal(true)
    expect(runningPid(stamp)).to.equal(undefined)
  })

  it('does not take a later process with the same pid for it', () => {
    const earlier = (stampOf(process.pid) ?? '').replace(/[^/]*$/, '1')
    expect(isGone(earlier)).to.equal(true)
    expect(runningPid(earlier)).to.equal(undefined)
  })

  it('of another machine says nothing about its process, nor does what is no stamp', () => {
    expect(isGone(`elsewhere/pid:[1]/${process.pid}/1`)).to.equal(false)
    expect(isGone('')).to.equal(false)
    expect(runningPid('')).to.equal(undefined)
  })
})
