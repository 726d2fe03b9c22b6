import { connect } from 'node:net'

export interface RawResponse {
  readonly status: number
  /** By lower-case name; a field sent twice is joined by a comma. */
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

/** The head of a request, to the letter: request line and fields, with no blank line lost or added. */
export function head(requestLine: string, fields: readonly string[] = []): string {
  return [requestLine, ...fields, '', ''].join('\r\n')
}

export interface Exchange {
  /** Written as soon as the first answer, `100 Continue` as a rule, has begun to arrive. */
  readonly afterFirst?: string
  /** Says that nothing more will be written, right behind the bytes. */
  readonly end?: boolean
}

/**
 * Writes the bytes on a connection of their own, and resolves to every answer that comes until the server closes it:
 * ask for `Connection: close`, unless the server is to close by itself.
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
    // A server that answers before it has read everything may reset the connection behind its answer.
    socket.on('error', (error) => text === '' && reject(error))
    socket.on('close', () => resolve(text))
  })
  return answersIn(received)
}

/** The only answer to the bytes. */
export async function exchangeOnce(url: string, bytes: string | Uint8Array, options: Exchange = {}): Promise<RawResponse> {
  const answers = await exchange(url, bytes, options)
  const [answer] = answers
  if (!answer || answers.length > 1) throw new Error(`${answers.length} answers came instead of one`)
  return answer
}

function answersIn(text: string): RawResponse[] {
  if (text === '') return []
  const [headText = '', ...rest] = text.split('\r\n\r\n')
  const [statusLine = '', ...fields] = headText.split('\r\n')
  const headers: Record<string, string> = {}
  for (const field of fields) {
    const [, name = '', value = ''] = /^([^:]+): ?(.*)$/.exec(field) ?? []
    headers[name.toLowerCase()] = headers[name.toLowerCase()] === undefined ? value : `${headers[name.toLowerCase()]}, ${value}`
  }
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1])
  const after = rest.join('\r\n\r\n')
  const length = Number(headers['content-length'] ?? 0)
  return [{ status, headers, text: after.slice(0, length) }, ...answersIn(after.slice(length))]
}
