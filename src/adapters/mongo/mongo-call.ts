import {
  MongoError,
  MongoNetworkError,
  MongoNotConnectedError,
  MongoServerError,
  MongoServerSelectionError,
  MongoTopologyClosedError,
  MongoWriteConcernError,
} from 'mongodb'
import pTimeout from 'p-timeout'
import { StoreUnavailable } from '../../core/errors.js'

/** The maximum duration of one operation, including server selection, the connection pool, the network and the server. */
export const CALL_TIMEOUT_MS = 1_500

/** Passed with every operation, so that the server stops working on it when the call has timed out. */
export const SERVER_TIME_LIMIT = { maxTimeMS: CALL_TIMEOUT_MS }

/** Runs one operation. Throws `StoreUnavailable` during an outage and after `timeoutMs`. It is then unknown whether a write took place. */
export async function callMongo<Value>(operation: () => Promise<Value>, timeoutMs = CALL_TIMEOUT_MS): Promise<Value> {
  const timeout = new StoreUnavailable(`MongoDB did not respond within ${timeoutMs} ms`)
  try {
    return await pTimeout(operation(), { milliseconds: timeoutMs, message: timeout })
  } catch (error) {
    if (!isOutage(error)) throw error
    throw new StoreUnavailable('MongoDB is unavailable', { cause: error })
  }
}

/** Compares the code, because MongoDB and compatible servers use different messages. */
export function isDuplicateKeyError(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === 11000
}

/** Codes and names from MongoDB's list of error codes. Servers return the first two while they recover. */
const OUTAGE_CODES = new Map([
  [1, 'InternalError'],
  [8, 'UnknownError'],
  [6, 'HostUnreachable'],
  [7, 'HostNotFound'],
  [50, 'MaxTimeMSExpired'],
  [64, 'WriteConcernTimeout'],
  [89, 'NetworkTimeout'],
  [91, 'ShutdownInProgress'],
  [100, 'UnsatisfiableWriteConcern'],
  [133, 'FailedToSatisfyReadPreference'],
  [134, 'ReadConcernMajorityNotAvailableYet'],
  [189, 'PrimarySteppedDown'],
  [262, 'ExceededTimeLimit'],
  [9001, 'SocketException'],
  [10058, 'LegacyNotPrimary'],
  [10107, 'NotWritablePrimary'],
  [11600, 'InterruptedAtShutdown'],
  [11601, 'Interrupted'],
  [11602, 'InterruptedDueToReplStateChange'],
  [13435, 'NotPrimaryNoSecondaryOk'],
  [13436, 'NotPrimaryOrSecondary'],
])

/** Labels that the server adds to errors that a client may retry. */
const OUTAGE_LABELS = ['RetryableWriteError', 'RetryableError', 'SystemOverloadedError']

const DNS_SYSTEM_CALLS = new Set<string | undefined>(['querySrv', 'queryTxt', 'getaddrinfo'])
const CLOSED_CONNECTION_CODES = new Set<string | undefined>(['EPIPE', 'ECONNRESET'])

/** Whether a later attempt may succeed: the server is unreachable, starting, stopping, stepping down or too slow. */
export function isOutage(error: unknown): boolean {
  if (
    error instanceof MongoNetworkError ||
    error instanceof MongoServerSelectionError ||
    error instanceof MongoNotConnectedError ||
    error instanceof MongoTopologyClosedError ||
    error instanceof MongoWriteConcernError
  ) {
    return true
  }
  // The driver does not wrap some Node.js errors: failed DNS lookups, and writes to a connection that the server has just closed.
  const { syscall, code } = (error ?? {}) as Partial<NodeJS.ErrnoException>
  if (DNS_SYSTEM_CALLS.has(syscall) || CLOSED_CONNECTION_CODES.has(code)) return true
  // The driver does not export this class.
  if (error instanceof MongoError && error.name === 'MongoWaitQueueTimeoutError') return true
  return (
    error instanceof MongoServerError && (OUTAGE_CODES.has(Number(error.code)) || OUTAGE_LABELS.some((label) => error.hasErrorLabel(label)))
  )
}
