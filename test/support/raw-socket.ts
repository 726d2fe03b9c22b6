import type { Server } from 'node:http'
import { connect } from 'node:net'

export interface RawResponse {
  readonly status: number
  /** By lower-case name. The values of a repeated field are joined by commas. */
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

/** The head of a request with exactly these lines. */
export function head(requestLine: string, fields: readonly string[] = []): string {
  return [requestLine, ...fields, '', ''].join('\r\n')
}

export interface Exchange {
  /** Written when the first bytes of a response arrive, for example `100 Continue`. */
  readonly afterFirst?: string
  /** Closes the sending side after the bytes. */
  readonly end?: boolean
}

/**
 * Writes the bytes on a new connection. Resolves to all responses when the server closes the connection, so the request
 * needs `Connection: close` unless the server closes the connection anyway.
 */
export async function exchange(
  url: string,
  bytes: string | Uint8Array,
  { afterFirst, end = false }: Exchange = {},
): Promise<RawResponse[]> {
  const { hostname, port } = new URL(url)
  const received = await new Promise<string>((resolve, reject) => {
    let text = ''
    const socket = connect(Number(port), hostname, () => (end ? socket.end(bytes) : socket.write(bytes)))
    if (afterFirst !== undefined) socket.once('data', () => socket.write(afterFirst))
    socket.on('data', (chunk) => (text += chunk.toString()))
    // A server that has not read everything may reset the connection after its response.
    socket.on('error', (error) => text === '' && reject(error))
    socket.on('close', () => resolve(text))
  })
  return parseResponses(received)
}

/** Like `exchange`, for exactly one response. */
export async function exchangeOnce(url: string, bytes: string | Uint8Array, options: Exchange = {}): Promise<RawResponse> {
  const responses = await exchange(url, bytes, options)
  const [response] = responses
  if (!response || responses.length > 1) throw new Error(`Got ${responses.length} responses instead of one`)
  return response
}

export async function countConnections(server: Server): Promise<number> {
  return new Promise((resolve, reject) => server.getConnections((error, count) => (error ? reject(error) : resolve(count))))
}

function parseResponses(text: string): RawResponse[] {
  if (text === '') return []
  const [headText = '', ...rest] = text.split('\r\n\r\n')
  const [statusLine = '', ...fields] = headText.split('\r\n')
  const headers: Record<string, string> = {}
  for (const field of fields) {
    const [, name = '', value = ''] = /^([^:]+): ?(.*)$/.exec(field) ?? []
    const earlier = headers[name.toLowerCase()]
    headers[name.toLowerCase()] = earlier === undefined ? value : `${earlier}, ${value}`
  }
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1])
  const after = rest.join('\r\n\r\n')
  const length = Number(headers['content-length'] ?? 0)
  return [{ status, headers, text: after.slice(0, length) }, ...parseResponses(after.slice(length))]
}
