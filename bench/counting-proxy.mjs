import { once } from 'node:events'
import { connect, createServer } from 'node:net'

/** Forwards connections and counts their bytes and, for MongoDB, the messages of the client. */
export async function startCountingProxy(target) {
  const { hostname, port } = new URL(target)
  const counts = { open: 0, sentBytes: 0, receivedBytes: 0, messages: 0 }
  const listener = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    const countMessages = makeMessageCounter(() => (counts.messages += 1))
    counts.open += 1
    client.on('data', (chunk) => {
      counts.sentBytes += chunk.length
      countMessages(chunk)
      upstream.write(chunk)
    })
    upstream.on('data', (chunk) => {
      counts.receivedBytes += chunk.length
      client.write(chunk)
    })
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ]) {
      one.setNoDelay(true)
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroy())
    }
    client.on('close', () => (counts.open -= 1))
  })
  listener.listen(0, '127.0.0.1').unref()
  await once(listener, 'listening')
  return { counts, url: target.replace(`${hostname}:${port}`, `127.0.0.1:${listener.address().port}`) }
}

/** Each message of MongoDB's protocol begins with its length. The counts of Redis, whose messages do not, are not used. */
function makeMessageCounter(count) {
  let rest = Buffer.alloc(0)
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= 4 && rest.readInt32LE() > 16 && rest.length >= rest.readInt32LE()) {
      count()
      rest = rest.subarray(rest.readInt32LE())
    }
  }
}
