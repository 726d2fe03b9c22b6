export const NO_CONNECTION = 'There is no connection to Redis'
export const NO_RESPONSE = 'Redis did not respond'

/** An error whose message contains one of these texts is only a consequence of an earlier error. */
const CONSEQUENCES = [
  NO_CONNECTION,
  NO_RESPONSE,
  'Connection is closed',
  'All sentinels are unreachable',
  'Failed to refresh slots cache',
  'None of startup nodes is available',
  // A server that rejects a client certificate sends an alert and closes. A client that is still writing may only see the connection close.
  'ECONNRESET',
  'EPIPE',
]

/** The first word of an error reply that all commands get, not only one. */
const SERVER_STATES = new Set([
  'BUSY',
  'CLUSTERDOWN',
  'LOADING',
  'MASTERDOWN',
  'MISCONF',
  'NOAUTH',
  'NOPERM',
  'NOREPLICAS',
  'NOSCRIPT',
  'OOM',
  'READONLY',
  'TRYAGAIN',
  'UNBLOCKED',
  'WRONGPASS',
])

/** Whether an error concerns the server or the connection. False if Redis rejected one command, such as for a key of the wrong type. */
export function isServerState(error: unknown): boolean {
  if (!isReply(error)) return true
  // Errors inside a script follow a prefix in old versions of Redis.
  return error.message.split(/[ :]/).some((word) => SERVER_STATES.has(word))
}

/** If Redis replies with an error, or the client rejects the command before it sends it, the command was not executed. */
export function maybeExecuted(error: unknown): boolean {
  const isUnsent = error instanceof Error && error.message.includes('enableOfflineQueue')
  return !isReply(error) && !isUnsent
}

/** OpenSSL's message contains memory addresses and source lines in addition to the reason. */
export function toReason(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause)
  const { code, reason } = cause as NodeJS.ErrnoException & { reason?: string }
  return code?.startsWith('ERR_SSL_') && reason ? reason : cause.message
}

export function isConsequence(reason: string): boolean {
  return CONSEQUENCES.some((consequence) => reason.includes(consequence))
}

function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError'
}
