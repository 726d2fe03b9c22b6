import { expect } from 'chai'
import {
  MongoClient,
  MongoClientClosedError,
  MongoError,
  MongoExpiredSessionError,
  MongoNetworkError,
  MongoNetworkTimeoutError,
  MongoNotConnectedError,
  MongoOperationTimeoutError,
  MongoServerClosedError,
  MongoServerError,
  MongoStalePrimaryError,
  MongoTopologyClosedError,
  MongoUnexpectedServerResponseError,
} from 'mongodb'
import { callMongo } from '../../../src/adapters/mongo/mongo-call.js'
import { StoreUnavailable } from '../../../src/core/errors.js'
import { rejection } from '../../contracts/rejection.js'
import { collectUnhandledRejections } from '../../support/unhandled-rejections.js'
import { within } from '../../support/until.js'

/** The codes in MongoDB's list for servers that are unreachable, starting, stopping, stepping down, overloaded or too slow. */
const OUTAGE_CODES = [
  1, 6, 7, 8, 24, 46, 50, 64, 89, 91, 94, 100, 112, 133, 134, 148, 189, 202, 262, 279, 317, 365, 384, 9001, 10107, 11600, 11602, 13435,
  13436, 14031,
]

/** The driver does not export these classes. */
const aDriverError = (name: string) => Object.defineProperty(new MongoError(name), 'name', { value: name })

/** BadValue, Unauthorized, TypeMismatch, AuthenticationFailed, IndexOptionsConflict, DocumentValidationFailure, DuplicateKey. */
const ERROR_CODES = [2, 13, 14, 18, 85, 121, 11000]

describe('a call to MongoDB', () => {
  it('returns the result of the operation, including undefined', async () => {
    expect(await callMongo(async () => 7)).to.equal(7)
    expect(await callMongo(async () => undefined)).to.equal(undefined)
  })

  it('leaves no timer behind, which would keep a command from ending', async () => {
    const countTimers = () => process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length
    // Mocha sets the timer of the test after it has called it.
    await new Promise((resolve) => setImmediate(resolve))
    const before = countTimers()
    await callMongo(async () => 7)
    await rejection(callMongo(() => Promise.reject(new Error('fails'))))
    expect(countTimers()).to.equal(before)
  })

  for (const error of [
    new MongoNetworkError('reset'),
    new MongoNetworkTimeoutError('silent'),
    new MongoNotConnectedError('not yet'),
    new MongoTopologyClosedError('closed'),
    new MongoServerClosedError('closed'),
    new MongoClientClosedError(),
    new MongoExpiredSessionError(),
    new MongoStalePrimaryError('stale'),
    new MongoUnexpectedServerResponseError('nothing'),
    new MongoOperationTimeoutError('late'),
    aDriverError('MongoPoolClosedError'),
    aDriverError('MongoWaitQueueTimeoutError'),
    new Error('This socket has been ended by the other party'),
    Object.assign(new Error('Cannot call write after a stream was destroyed'), { code: 'ERR_STREAM_DESTROYED' }),
    Object.assign(new Error('This socket has been ended by the other party'), { code: 'EPIPE' }),
    Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }),
    ...OUTAGE_CODES.map((code) => new MongoServerError({ code, message: `code ${code}` })),
  ]) {
    it(`reports an outage with its cause after ${error.name} ${'code' in error ? error.code : error.message}`, async () => {
      const reason = await rejection(callMongo(() => Promise.reject(error)))
      expect(reason).to.be.instanceOf(StoreUnavailable).with.property('cause', error)
    })
  }

  for (const error of [
    new MongoError('of the driver'),
    new TypeError('of ours'),
    ...ERROR_CODES.map((code) => new MongoServerError({ code, message: `code ${code}` })),
  ]) {
    it(`rethrows an error that a retry cannot fix, without changing it: ${error.message}`, async () => {
      expect(await rejection(callMongo(() => Promise.reject(error)))).to.equal(error)
    })
  }

  it('reports an outage after its timeout, and ignores an error that comes later', async () => {
    let fail: (error: Error) => void = () => {}
    const pending = new Promise((_, reject) => {
      fail = reject
    })
    const unhandled = await collectUnhandledRejections(async () => {
      expect(await rejection(callMongo(() => pending, 10)))
        .to.be.instanceOf(StoreUnavailable)
        .with.property('message')
        .that.includes('10 ms')
      fail(new Error('too late'))
    })
    expect(unhandled).to.deep.equal([])
  })

  it('times out within 2 s', async () => {
    const never = new Promise<never>(() => {})
    expect(await within(2_000, 'the call times out', rejection(callMongo(() => never)))).to.be.instanceOf(StoreUnavailable)
  })

  it('reports an outage if the DNS lookup of a mongodb+srv name fails', async () => {
    const client = new MongoClient('mongodb+srv://cluster.petstore.invalid')
    expect(await rejection(callMongo(() => client.db().command({ ping: 1 }), 9_000))).to.be.instanceOf(StoreUnavailable)
    await client.close()
  })
})
