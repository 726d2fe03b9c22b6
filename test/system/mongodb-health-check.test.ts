import { readFileSync } from 'node:fs'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'

const SCRIPT = readFileSync('config/mongodb/health-check.js', 'utf8')

/** The parts of mongosh, and of a server that requires authentication, that the script uses. The script has not been tested with MongoDB. */
class FakeMongo {
  readonly calls: string[] = []
  readonly users = new Map<string, string>()
  setName: string | undefined
  isWritablePrimary = false
  private isLoggedIn = false

  check(): void {
    this.isLoggedIn = false
    const context = {
      require: () => ({ readFileSync: (path: string) => `content of ${path}\n` }),
      rs: {
        initiate: ({ _id }: { _id: string }) => {
          this.calls.push(`initiate ${_id}`)
          this.setName = _id
        },
      },
      db: { hello: () => ({ setName: this.setName, isWritablePrimary: this.isWritablePrimary }), getSiblingDB: this.database },
    }
    runInNewContext(SCRIPT, context)
  }

  private readonly database = (name: string) => ({
    auth: (user: string, pwd: string) => {
      if (this.users.get(`${name}.${user}`) !== pwd) throw Object.assign(new Error('Authentication failed.'), { code: 18 })
      this.isLoggedIn = true
    },
    createUser: ({ user, pwd, roles }: { user: string; pwd: string; roles: string[] }) => {
      if (this.users.size > 0 && !this.isLoggedIn) throw new Error('createUser requires authentication')
      this.calls.push(`create ${name}.${user}: ${roles.join()}`)
      this.users.set(`${name}.${user}`, pwd)
    },
  })
}

describe('config/mongodb/health-check.js', () => {
  let mongo: FakeMongo

  beforeEach(() => {
    mongo = new FakeMongo()
  })

  it('creates the replica set, and fails until there is a primary', () => {
    expect(() => mongo.check()).to.throw('There is no primary yet')
    expect(() => mongo.check()).to.throw('There is no primary yet')
    expect(mongo.calls).to.deep.equal(['initiate petstore'])
  })

  it('creates an administrator and a user who can read and write the pets only', () => {
    Object.assign(mongo, { setName: 'petstore', isWritablePrimary: true })
    mongo.check()
    expect(mongo.calls).to.deep.equal(['create admin.root: root', 'create petstore.petstore: readWrite'])
    expect(mongo.users.get('petstore.petstore')).to.equal('content of /run/secrets/mongodb-password')
  })

  it('succeeds and changes nothing if everything exists', () => {
    Object.assign(mongo, { setName: 'petstore', isWritablePrimary: true })
    mongo.check()
    const { length } = mongo.calls
    mongo.check()
    expect(mongo.calls).to.have.lengthOf(length)
  })

  it('creates the user of the service if a check ended after it had created the administrator', () => {
    Object.assign(mongo, { setName: 'petstore', isWritablePrimary: true })
    mongo.users.set('admin.root', 'content of /run/secrets/mongodb-root-password')
    mongo.check()
    expect(mongo.calls).to.deep.equal(['create petstore.petstore: readWrite'])
  })
})
