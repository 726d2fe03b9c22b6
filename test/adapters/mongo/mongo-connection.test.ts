import { expect } from 'chai'
import { MongoConnection, toSettingError } from '../../../src/adapters/mongo/mongo-connection.js'
import { SettingError } from '../../../src/core/errors.js'

/** No server listens there. */
const NO_SERVER = 'mongodb://127.0.0.1:1'

describe('a connection to MongoDB', () => {
  const opened: MongoConnection[] = []

  afterEach(() => Promise.all(opened.splice(0).map((connection) => connection.close())))

  function connectionTo(url: string): MongoConnection {
    const connection = new MongoConnection(url)
    opened.push(connection)
    return connection
  }

  for (const [url, database] of [
    ['mongodb://host', 'petstore'],
    ['mongodb://host/', 'petstore'],
    ['mongodb://host?w=1', 'petstore'],
    ['mongodb://host/?authSource=test', 'petstore'],
    ['mongodb://user:pass@host:27018/?appName=of/test', 'petstore'],
    ['mongodb://host/pets', 'pets'],
    ['mongodb://user:p%40ss%2Fword@one,two:27018/pets?replicaSet=rs0', 'pets'],
    ['mongodb://host/test', 'test'],
    ['mongodb://one,two/test?replicaSet=rs0', 'test'],
    ['mongodb+srv://user:pass@cluster.example.com/pets?retryWrites=true', 'pets'],
    ['mongodb+srv://cluster.example.com', 'petstore'],
  ] as const) {
    it(`uses the database ${database} with ${url}`, () => {
      expect(connectionTo(url).db.databaseName).to.equal(database)
    })
  }

  for (const query of [
    '',
    '?w=1',
    '?w=0&journal=false',
    '?wtimeoutMS=60000',
    '?readConcernLevel=local',
    '?readPreference=secondaryPreferred',
  ]) {
    it(`acknowledges writes on the journals of a majority and reads them from the primary, whatever the URL says: ${query || 'nothing'}`, () => {
      const { db } = connectionTo(`${NO_SERVER}/pets${query}`)
      const { writeConcern, readConcern, readPreference } = db.collection('pets')
      expect(writeConcern).to.include({ w: 'majority', journal: true, wtimeoutMS: 1_000 })
      expect(readConcern).to.include({ level: 'majority' })
      expect(readPreference?.mode).to.equal('primary')
    })
  }

  for (const url of [
    'mongodb://',
    'mongodb://petstore:hunter2',
    'mongodb://petstore:hunter2/pets',
    'mongodb://petstore:hunter2@',
    'mongodb://petstore:hunter2@/pets',
    'mongodb://petstore:hunter2@host:99999/pets',
    'mongodb://petstore:hunter2@host:port/pets',
    'mongodb://petstore:hunter2@[::1/pets',
    'mongodb://petstore:x/hunter2@host/pets',
    'mongodb://petstore:x@hunter2@host/pets',
    'mongodb://petstore:hunter2%2@host/pets',
    'mongodb://petstore:hunter2@host/a.b',
    'mongodb://petstore:hunter2@host/?nosuchoption=1',
    'mongodb://petstore:hunter2@host/?maxPoolSize=many',
    'mongodb://petstore:hunter2@host/?w=1&w=2',
    'mongodb://petstore:hunter2@host/?tls=true&tlsCAFile=/no/ca.pem',
    'mongodb://petstore:hunter2@host/?tls=true&tlsCertificateKeyFile=/no/client.pem&tlsCertificateKeyFilePassword=hunter2',
    'mongodb+srv://petstore:hunter2',
    'mongodb+srv://petstore:hunter2@host:27017/pets',
    'mongodb+srv://petstore:hunter2@one.example.com,two.example.com/pets',
  ]) {
    it(`is rejected with an error for operators that contains no password: ${url}`, () => {
      expect(() => new MongoConnection(url))
        .to.throw(SettingError, /^MONGODB_URL cannot be used: \S/)
        .with.property('message')
        .that.does.not.match(/hunter2/)
    })
  }

  it('never prints the value of an option, whatever the driver reports, but names the option if the driver does', () => {
    for (const query of [
      'compressors=hunter2',
      'compressors=none,hunter2',
      'authMechanismProperties=CANONICALIZE_HOST_NAME:hunter2',
      'authMechanism=hunter2',
      'maxPoolSize=hunter2',
      'readPreference=hunter2',
      'readConcernLevel=hunter2&tls=hunter2',
      'replicaSet=a&replicaSet=hunter2',
      'serverMonitoringMode=hunter%32',
      'zlibCompressionLevel=hunter2',
      'tlsCertificateKeyFilePassword=hunter2&hunter2',
      'proxyPassword=hunter2',
    ]) {
      for (const url of [`mongodb://host/?${query}`, `mongodb://user:hunter2@host/?tls=true&${query}`, `mongodb+srv://a.b.c/?${query}`]) {
        let message = ''
        try {
          connectionTo(url)
        } catch (error) {
          ;({ message } = error as Error)
        }
        expect(message, url).to.not.include('hunter2')
      }
    }
    expect(() => connectionTo('mongodb://host/?maxPoolSize=hunter2')).to.throw(SettingError, 'maxPoolSize')
    expect(() => connectionTo('mongodb://host/?noSuchOption=hunter2')).to.throw(SettingError, /option nosuchoption is not supported/i)
  })

  it('does not repeat a part of the URL that the message of the driver contains decoded', () => {
    const { message } = toSettingError(new Error('cannot use hunter2'), 'mongodb://user:%68unter2@host/')
    expect(message).to.not.include('hunter2')
  })

  it('rejects a TLS file that cannot be read or has no effect without tls=true, and names it', () => {
    const connect = (query: string) => () => new MongoConnection(`mongodb://host/?${query}`)
    for (const option of ['tlsCAFile', 'tlsCertificateKeyFile', 'tlsCRLFile']) {
      expect(connect(`tls=true&${option}=/no/file.pem`)).to.throw(SettingError, `cannot read ${option} /no/file.pem (ENOENT)`)
      expect(connect(`tls=true&${option}=${import.meta.filename}`)).to.throw(
        SettingError,
        new RegExp(`cannot read ${option} ${import.meta.filename} \\(ERR_\\w+\\)`),
      )
      expect(connect(`${option}=/no/file.pem`)).to.throw(SettingError, `${option} requires tls=true`)
      expect(connect(`tls=false&${option}=/no/file.pem`)).to.throw(SettingError, `${option} requires tls=true`)
    }
  })

  it('is not up if no server listens, and does not throw', async () => {
    expect(await connectionTo(NO_SERVER).isUp()).to.equal(false)
  })

  it('is not up after it is closed', async () => {
    const connection = new MongoConnection(NO_SERVER)
    await connection.close()
    expect(await connection.isUp()).to.equal(false)
  })
})
