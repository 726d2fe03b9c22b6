// The health check of MongoDB in docker-compose.yml: succeeds if there is a primary and the service's user can log in.
// At the first start, it creates the replica set and the users. While there is no user, MongoDB allows that without a password, but only
// from inside the container.
const { readFileSync } = require('node:fs')
const AUTHENTICATION_FAILED = 18

const admin = db.getSiblingDB('admin')
const petstore = db.getSiblingDB('petstore')
const rootPassword = readSecret('mongodb-root-password')
const password = readSecret('mongodb-password')

if (!db.hello().setName) rs.initiate({ _id: 'petstore', members: [{ _id: 0, host: 'mongodb:27017' }] })
if (!db.hello().isWritablePrimary) throw new Error('There is no primary yet')

if (!logIn(petstore, 'petstore', password)) {
  if (!logIn(admin, 'root', rootPassword)) {
    admin.createUser({ user: 'root', pwd: rootPassword, roles: ['root'] })
    admin.auth('root', rootPassword)
  }
  petstore.createUser({ user: 'petstore', pwd: password, roles: ['readWrite'] })
}

function readSecret(name) {
  return readFileSync(`/run/secrets/${name}`, 'utf8').trim()
}

function logIn(database, user, pwd) {
  try {
    database.auth(user, pwd)
    return true
  } catch (error) {
    if (error.code === AUTHENTICATION_FAILED) return false
    throw error
  }
}
