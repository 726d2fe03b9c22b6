import {
  MongoError,
  MongoNetworkError,
  MongoNotConnectedError,
  MongoServerError,
  MongoServerSelectionError,
  MongoTopologyClosedError,
  MongoWriteConcernError,
} from 'mongodb'
import { StoreUnavailable } from '../../core/errors.js'

/** The longest that a request waits for one operation, whatever keeps it: selection, the pool, the network or the server. */
export const CALL_TIMEOUT_MS = 1_500

/** Passed with every operation: the server itself gives up when nobody can be waiting any more. */
export const SERVER_TIME_LIMIT = { maxTimeMS: CALL_TIMEOUT_MS }

/** Runs one operation. Throws `StoreUnavailable` when MongoDB cannot be reached, cannot serve it now, or does not answer in time: whether a write took place is then unknown. */
export async function callMongo<Value>(operation: () => Promise<Value>, timeoutMs = CALL_TIMEOUT_MS): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new StoreUnavailable(`MongoDB did not answer within ${timeoutMs} ms`)), timeoutMs)
  })
  try {
    return await Promise.race([operation(), timeout])
  } catch (error) {
    if (!isOutage(error)) throw error
    throw new StoreUnavailable('MongoDB could not serve this', { cause: error })
  } finally {
    clearTimeout(timer)
  }
}

/** MongoDB and what speaks its protocol word this differently: the code is what they agree on. */
export function isDuplicateKey(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === 11000
}

/** By their names in MongoDB's list of error codes. The first two say that the server itself failed, as one does while it recovers. */
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

/** What the server itself calls worth another try. */
const OUTAGE_LABELS = ['RetryableWriteError', 'RetryableError', 'SystemOverloadedError']

const DNS_LOOKUPS = new Set<string | undefined>(['querySrv', 'queryTxt', 'getaddrinfo'])
const CLOSED_CONNECTION = new Set<string | undefined>(['EPIPE', 'ECONNRESET'])

/** Whether the request may be right, but cannot be served now: the server is away, starting, stopping, stepping down or out of time. */
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
  // The driver passes on some errors of Node as they are: a failed DNS lookup, and a write to a connection that the server has just closed.
  const { syscall, code } = (error ?? {}) as Partial<NodeJS.ErrnoException>
  if (DNS_LOOKUPS.has(syscall) || CLOSED_CONNECTION.has(code)) return true
  // The driver does not export the error of a pool without a free connection.
  if (error instanceof MongoError && error.name === 'MongoWaitQueueTimeoutError') return true
  return (
    error instanceof MongoServerError && (OUTAGE_CODES.has(Number(error.code)) || OUTAGE_LABELS.some((label) => error.hasErrorLabel(label)))
  )
}
