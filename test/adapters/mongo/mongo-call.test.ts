import { expect } from 'chai'
import {
  MongoClient,
  MongoError,
  MongoNetworkError,
  MongoNetworkTimeoutError,
  MongoNotConnectedError,
  MongoServerError,
  MongoTopologyClosedError,
} from 'mongodb'
import { callMongo } from '../../../src/adapters/mongo/mongo-call.js'
import { StoreUnavailable } from '../../../src/core/errors.js'
import { rejection } from '../../contracts/rejection.js'
import { collectUnhandledRejections } from '../../support/unhandled-rejections.js'
import { within } from '../../support/until.js'

/** All that MongoDB's list of codes names for servers that are away, stopping, stepping down or out of time. */
const OUTAGE_CODES = [1, 6, 7, 8, 50, 64, 89, 91, 100, 133, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436]

/** BadValue, Unauthorized, TypeMismatch, AuthenticationFailed, IndexOptionsConflict, DocumentValidationFailure, DuplicateKey. */
const FAULT_CODES = [2, 13, 14, 18, 85, 121, 11000]

describe('a call to MongoDB', () => {
  it('passes on what the operation resolves to, undefined too', async () => {
    expect(await callMongo(async () => 7)).to.equal(7)
    expect(await callMongo(async () => undefined)).to.equal(undefined)
  })

  for (const error of [
    new MongoNetworkError('reset'),
    new MongoNetworkTimeoutError('silent'),
    new MongoNotConnectedError('not yet'),
    new MongoTopologyClosedError('closed'),
    Object.assign(new Error('This socket has been ended by the other party'), { code: 'EPIPE' }),
    Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }),
    ...OUTAGE_CODES.map((code) => new MongoServerError({ code, message: `code ${code}` })),
  ]) {
    it(`is an outage, with its cause, when it ends with ${error.name} ${error.code ?? ''}`, async () => {
      const reason = await rejection(callMongo(() => Promise.reject(error)))
      expect(reason).to.be.instanceOf(StoreUnavailable).with.property('cause', error)
    })
  }

  for (const error of [
    new MongoError('of the driver'),
    new TypeError('of ours'),
    ...FAULT_CODES.map((code) => new MongoServerError({ code, message: `code ${code}` })),
  ]) {
    it(`passes on a problem that waiting does not heal: ${error.message}`, async () => {
      expect(await rejection(callMongo(() => Promise.reject(error)))).to.equal(error)
    })
  }

  it('is an outage when there is no answer in time, and an error that comes later is nobody’s surprise', async () => {
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

  it('is given up before a client has waited for 2 s', async () => {
    const never = new Promise<never>(() => {})
    expect(await within(2_000, 'the call is given up', rejection(callMongo(() => never)))).to.be.instanceOf(StoreUnavailable)
  })

  it('is an outage where nothing listens', async () => {
    const client = new MongoClient('mongodb://127.0.0.1:1', { serverSelectionTimeoutMS: 50 })
    expect(await rejection(callMongo(() => client.db().command({ ping: 1 })))).to.be.instanceOf(StoreUnavailable)
    await client.close()
  })

  it('is an outage where the servers behind a mongodb+srv name cannot be looked up', async () => {
    const client = new MongoClient('mongodb+srv://cluster.petstore.invalid')
    expect(await rejection(callMongo(() => client.db().command({ ping: 1 }), 9_000))).to.be.instanceOf(StoreUnavailable)
    await client.close()
  })
})
