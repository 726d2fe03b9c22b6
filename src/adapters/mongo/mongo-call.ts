import {
  MongoBulkWriteError,
  MongoClientClosedError,
  MongoError,
  MongoExpiredSessionError,
  MongoNetworkError,
  MongoNotConnectedError,
  MongoOperationTimeoutError,
  MongoServerClosedError,
  MongoServerError,
  MongoServerSelectionError,
  MongoStalePrimaryError,
  MongoTopologyClosedError,
  MongoUnexpectedServerResponseError,
  MongoWriteConcernError,
} from 'mongodb'
import { StoreUnavailable } from '../../core/errors.js'

/** The maximum duration of one operation, including server selection, the connection pool, the network and the server. */
export const CALL_TIMEOUT_MS = 1_500

/** Passed with every operation, so that the server stops working on it when the call has timed out. */
export const SERVER_TIME_LIMIT = { maxTimeMS: CALL_TIMEOUT_MS }

/** Runs one operation. Throws `StoreUnavailable` during an outage and after `timeoutMs`. It is then unknown whether a write took place. */
export async function callMongo<Value>(operation: () => Promise<Value>, timeoutMs = CALL_TIMEOUT_MS): Promise<Value> {
  // p-timeout would create an error with a stack trace for every call.
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new StoreUnavailable(`MongoDB did not respond within ${timeoutMs} ms`)), timeoutMs)
  })
  try {
    return await Promise.race([operation(), timeout])
  } catch (error) {
    if (!isOutage(error)) throw error
    throw new StoreUnavailable('MongoDB is unavailable', { cause: error })
  } finally {
    clearTimeout(timer)
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
  [24, 'LockTimeout'],
  [46, 'LockBusy'],
  [50, 'MaxTimeMSExpired'],
  [64, 'WriteConcernTimeout'],
  [89, 'NetworkTimeout'],
  [91, 'ShutdownInProgress'],
  [94, 'NotYetInitialized'],
  [100, 'UnsatisfiableWriteConcern'],
  [112, 'WriteConflict'],
  [133, 'FailedToSatisfyReadPreference'],
  [134, 'ReadConcernMajorityNotAvailableYet'],
  [148, 'ReadConcernMajorityNotEnabled'],
  [189, 'PrimarySteppedDown'],
  [202, 'NetworkInterfaceExceededTimeLimit'],
  [262, 'ExceededTimeLimit'],
  [279, 'ClientDisconnect'],
  [317, 'ConnectionPoolExpired'],
  [365, 'TemporarilyUnavailable'],
  [384, 'ConnectionError'],
  [9001, 'SocketException'],
  [10058, 'LegacyNotPrimary'],
  [10107, 'NotWritablePrimary'],
  [11600, 'InterruptedAtShutdown'],
  [11601, 'Interrupted'],
  [11602, 'InterruptedDueToReplStateChange'],
  [13435, 'NotPrimaryNoSecondaryOk'],
  [13436, 'NotPrimaryOrSecondary'],
  [14031, 'OutOfDiskSpace'],
])

/** Labels that the server adds to errors that a client may retry. */
const OUTAGE_LABELS = ['RetryableWriteError', 'RetryableError', 'SystemOverloadedError']

/** The driver throws the last five when a connection, a session or the client is closed during an operation. */
const OUTAGE_CLASSES = [
  MongoNetworkError,
  MongoServerSelectionError,
  MongoOperationTimeoutError,
  MongoStalePrimaryError,
  MongoUnexpectedServerResponseError,
  MongoWriteConcernError,
  MongoNotConnectedError,
  MongoTopologyClosedError,
  MongoServerClosedError,
  MongoClientClosedError,
  MongoExpiredSessionError,
]

/** The names of classes that the driver does not export. */
const OUTAGE_NAMES = new Set(['MongoWaitQueueTimeoutError', 'MongoPoolClosedError'])

const DNS_SYSTEM_CALLS = new Set<string | undefined>(['querySrv', 'queryTxt', 'getaddrinfo'])
const CONNECTION_ERROR_CODES = new Set<string | undefined>([
  'ECONNABORTED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EPIPE',
  'ERR_SOCKET_CLOSED',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_WRITE_AFTER_END',
  'ETIMEDOUT',
])
/** Node's message for a write to a connection that the server has just closed. The error may have no code. */
const SOCKET_ENDED = 'This socket has been ended by the other party'

/** Whether a later attempt may succeed: the server is unreachable, starting, stopping, stepping down, overloaded or too slow. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (OUTAGE_CLASSES.some((outage) => error instanceof outage)) return true
  if (error instanceof MongoBulkWriteError && isOutageOfBulkWrite(error)) return true
  if (error instanceof MongoServerError) {
    return OUTAGE_CODES.has(Number(error.code)) || OUTAGE_LABELS.some((label) => error.hasErrorLabel(label))
  }
  if (error instanceof MongoError) return OUTAGE_NAMES.has(error.name)
  // The driver does not wrap some errors of Node.js: failed DNS lookups, and errors of a connection while a write waits for its buffer.
  const { syscall, code, message } = error as NodeJS.ErrnoException
  return DNS_SYSTEM_CALLS.has(syscall) || CONNECTION_ERROR_CODES.has(code) || message === SOCKET_ENDED
}

/** The driver wraps every error of a bulk write. `errorResponse` is the original error of a connection or of the driver; the code and labels of a server error are copied. */
function isOutageOfBulkWrite({ result, errorResponse }: MongoBulkWriteError): boolean {
  return result.getWriteConcernError() !== undefined || isOutage(errorResponse)
}
