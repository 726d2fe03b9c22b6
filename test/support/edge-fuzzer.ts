import { connect } from 'node:net'
import fc from 'fast-check'

/** What a hostile or broken client does on one connection. */
export interface Conversation {
  /** Written in order, each in a new iteration of the event loop. */
  readonly segments: readonly Buffer[]
  readonly ending: 'close-sending-side' | 'reset' | 'leave' | 'wait'
}

/** How long a client waits for the server to close the connection. */
const WAIT_MS = 40

const METHODS = ['GET', 'GET', 'GET', 'POST', 'POST', 'HEAD', 'OPTIONS', 'CONNECT', 'PUT', 'TRACE', 'PRI', 'get', '']
const TARGETS = [
  '/v1/pets',
  '/v1/pets',
  '/v1/pets/1',
  '/v1/usage',
  '/v1/none',
  '/livez',
  '/docs/scalar.js',
  '/metrics',
  '/health',
  '*',
  'a:1',
  'http://x/livez',
]
const VERSIONS = ['HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0', 'HTTP/2.0', 'HTTP/0.9', 'FTP/1.1']
const REX = '{"name":"Rex","categoryId":7}'
const BODIES = [
  '',
  '',
  REX,
  REX.slice(0, 9),
  `${REX.length.toString(16)}\r\n${REX}\r\n0\r\n\r\n`,
  '5\r\nabcde\r\nzz\r\n',
  '0\r\nTrailer: x\r\n\r\n',
]

function listFields(key: string): readonly string[] {
  return [
    'Host: pets',
    'Host: pets',
    'Host: a b',
    `Authorization: Bearer ${key}`,
    `Authorization: Bearer ${key}`,
    'Authorization: Bearer pst_live_rubbish',
    'Content-Type: application/json',
    `Content-Length: ${REX.length}`,
    'Content-Length: 3',
    'Content-Length: -1',
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: gzip, chunked',
    'Connection: close',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Expect: 100-continue',
    'Expect: a-miracle',
    'Accept-Encoding: br',
    ' folded: x',
    'No colon',
    `X-Long: ${'x'.repeat(5_000)}`,
  ]
}

/** Valid, almost valid, truncated, reordered and pipelined requests, mixed with random bytes. */
function arbitraryConversation(key: string): fc.Arbitrary<Conversation> {
  const request = fc
    .tuple(
      fc.constantFrom(...METHODS),
      fc.constantFrom(...TARGETS),
      fc.constantFrom(...VERSIONS),
      fc.subarray([...listFields(key)], { maxLength: 8 }),
      fc.constantFrom(...BODIES),
    )
    .map(([method, target, version, lines, body]) => [`${method} ${target} ${version}`, 'Host: pets', ...lines, '', body].join('\r\n'))
  const good = fc.constantFrom(
    'GET /livez HTTP/1.1\r\nHost: pets\r\n\r\n',
    `GET /v1/pets?limit=1 HTTP/1.1\r\nHost: pets\r\nAuthorization: Bearer ${key}\r\n\r\n`,
    `POST /v1/pets HTTP/1.1\r\nHost: pets\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${REX.length}\r\n\r\n${REX}`,
  )
  const reordered = request.chain((text) => fc.shuffledSubarray(text.split('\r\n')).map((lines) => lines.join('\r\n')))
  const bytes = fc.uint8Array({ maxLength: 64 }).map((array) => Buffer.from(array).toString('latin1'))
  const message = fc.oneof({ weight: 4, arbitrary: request }, { weight: 4, arbitrary: good }, reordered, bytes)
  return fc
    .tuple(
      fc.array(message, { minLength: 1, maxLength: 5 }),
      fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
      fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 3 }),
      fc.constantFrom<Conversation['ending']>('close-sending-side', 'reset', 'leave', 'wait'),
    )
    .map(([messages, truncatedAt, cuts, ending]) => {
      const whole = Buffer.from(messages.join(''), 'latin1')
      const sent = truncatedAt === null ? whole : whole.subarray(0, Math.floor(whole.length * truncatedAt))
      const at = [0, ...cuts.map((cut) => Math.floor(sent.length * cut)).toSorted((a, b) => a - b), sent.length]
      return { segments: at.slice(1).map((end, index) => sent.subarray(at[index], end)), ending }
    })
}

/** Returns the same conversations for the same seed. Some of them send `key`, a valid API key. */
export function sampleConversations(key: string, seed: number, count: number): Conversation[] {
  return fc.sample(arbitraryConversation(key), { seed, numRuns: count })
}

/** Resolves to everything that the server sent when either side has closed the connection. */
export async function converse(url: string, { segments, ending }: Conversation): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
  let received = ''
  socket.setEncoding('latin1').on('data', (text: string) => (received += text))
  // Closing a connection with unread bytes resets it.
  socket.on('error', () => socket.destroy())
  socket.on('end', () => socket.end())
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.once('connect', () => void write())

  async function write(): Promise<void> {
    for (const segment of segments) {
      if (!socket.writable) break
      socket.write(segment)
      await new Promise((resolve) => setImmediate(resolve))
    }
    if (ending === 'reset') socket.resetAndDestroy()
    else if (ending === 'leave') socket.destroy()
    else if (ending === 'close-sending-side') socket.end()
    setTimeout(() => socket.destroy(), WAIT_MS).unref()
  }
  await closed
  return received
}
