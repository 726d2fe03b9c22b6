// A process that sends HTTP/1.1 requests. Its parent sends it a load, and it replies with what it measured.
//
// Responses have a known shape, so it reads the status and the Content-Length and needs no HTTP parser. That keeps its own CPU time low, which
// matters because it shares the machine with the servers that it measures.
import { connect } from 'node:net'
import { once } from 'node:events'
import { createHistogram } from 'node:perf_hooks'

/**
 * A load has groups that send at the same time. Each group has `ports` on the loopback interface, `requests` (the bytes of each as text, sent
 * in turn), the number of `connections`, and `perSecond`. Without `perSecond`, each connection sends its next request as soon as it has the
 * response to its last one. After `atMost` requests, the group ends.
 */
process.on('message', (load) => {
  generate(load).then(
    (measured) => process.send({ measured }),
    (error) => process.send({ error: String(error) }),
  )
})
process.on('disconnect', () => process.exit())

async function generate({ groups, seconds }) {
  const running = await Promise.all(groups.map((group) => Group.connect(group)))
  const cpuBefore = process.cpuUsage()
  const startMs = performance.now()
  const measured = await Promise.all(running.map((group) => group.run(seconds)))
  const elapsedMs = performance.now() - startMs
  const { user, system } = process.cpuUsage(cpuBefore)
  return { elapsedMs, cpuMicros: user + system, groups: measured }
}

class Group {
  #statuses = {}
  #latencies = createHistogram()
  /** When requests became due while all connections were busy. */
  #dueMs = []
  #idle = []
  #next = 0
  #sent = 0
  #inFlight = 0
  #isEnding = false

  constructor({ requests, perSecond, atMost }) {
    this.requests = requests.map((request) => Buffer.from(request, 'latin1'))
    this.perSecond = perSecond
    this.atMost = atMost
    this.ended = new Promise((resolve, reject) => Object.assign(this, { end: resolve, fail: reject }))
  }

  static async connect({ ports, connections, ...options }) {
    const group = new Group(options)
    await Promise.all(Array.from({ length: connections }, (_, index) => group.#open(ports[index % ports.length])))
    return group
  }

  async run(seconds) {
    const timers = [setTimeout(() => this.#stop(), seconds * 1_000)]
    if (this.perSecond)
      timers.push(
        setInterval(
          makePacer(this.perSecond, () => this.#sendOrWait()),
          1,
        ),
      )
    else while (this.#idle.length > 0 && !this.#isEnding) this.#send(this.#idle.pop(), performance.now())
    await this.ended.finally(() => {
      for (const timer of timers) clearInterval(timer)
    })
    for (const { socket } of this.#idle) socket.destroy()
    const { count } = this.#latencies
    const [p50Ms, p99Ms] = [50, 99].map((percent) => this.#latencies.percentile(percent) / 1_000)
    return { count, statuses: this.#statuses, p50Ms, p99Ms }
  }

  async #open(port) {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    await once(socket, 'connect')
    const connection = { socket, sentMs: 0, received: '' }
    socket.on('data', (chunk) => this.#receive(connection, chunk))
    socket.on('error', (error) => this.fail(error))
    socket.on('end', () => this.fail(new Error(`The server on port ${port} closed a connection`)))
    this.#idle.push(connection)
  }

  #sendOrWait() {
    const nowMs = performance.now()
    const connection = this.#idle.pop()
    if (connection) this.#send(connection, nowMs)
    else this.#dueMs.push(nowMs)
  }

  /** The latency of a request begins when it is due, so a slow server does not reduce the load that it is measured with. */
  #send(connection, dueMs) {
    connection.sentMs = dueMs
    this.#inFlight += 1
    this.#sent += 1
    if (this.#sent === this.atMost) this.#isEnding = true
    connection.socket.write(this.requests[this.#next])
    this.#next = (this.#next + 1) % this.requests.length
  }

  #receive(connection, chunk) {
    const text = connection.received + chunk.latin1Slice()
    const headEnd = text.indexOf('\r\n\r\n')
    if (headEnd < 0 || text.length < headEnd + 4 + readContentLength(text, headEnd)) {
      connection.received = text
      return
    }
    connection.received = ''
    const nowMs = performance.now()
    const status = text.slice(9, 12)
    this.#statuses[status] = (this.#statuses[status] ?? 0) + 1
    this.#latencies.record(Math.max(1, Math.round((nowMs - connection.sentMs) * 1_000)))
    this.#inFlight -= 1
    if (this.#isEnding || this.perSecond) this.#reuse(connection)
    else this.#send(connection, nowMs)
  }

  #reuse(connection) {
    const dueMs = this.#isEnding ? undefined : this.#dueMs.shift()
    if (dueMs === undefined) this.#idle.push(connection)
    else this.#send(connection, dueMs)
    if (this.#isEnding && this.#inFlight === 0) this.end()
  }

  #stop() {
    this.#isEnding = true
    if (this.#inFlight === 0) this.end()
  }
}

function readContentLength(text, headEnd) {
  const [, length] = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, headEnd)) ?? []
  if (length === undefined) throw new Error(`A response has no Content-Length:\n${text.slice(0, headEnd)}`)
  return Number(length)
}

/** Returns a function for a timer that calls `send` as often as it has become due since its last call. */
function makePacer(perSecond, send) {
  const startMs = performance.now()
  let sent = 0
  return () => {
    const due = Math.floor(((performance.now() - startMs) * perSecond) / 1_000)
    for (; sent < due; sent += 1) send()
  }
}
