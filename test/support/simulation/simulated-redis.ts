import type { Random } from './random.js'
import type { RedisData, ScriptModel } from './script-model.js'
import { anEmptyDatabase } from './script-model.js'
import type { SimulatedClient } from './simulated-client.js'

/** Runs a command on the server and returns its reply. */
export type Command = (script: ScriptModel) => unknown

interface Received {
  readonly command: Command
  readonly reply: (result: { value: unknown } | { error: Error }) => void
}

/** What is left after a restart or a failover. `behind`: the last writes are lost. */
export type Recovered = 'everything' | 'behind' | 'nothing'

const SNAPSHOTS = 40

class ReplyError extends Error {
  override readonly name = 'ReplyError'
}

/** A Redis server and its data. */
export class SimulatedRedis {
  status: 'up' | 'frozen' | 'down' = 'up'
  isLoading = false
  readonly clients = new Set<SimulatedClient>()
  #queue: Received[] = []
  #snapshots: RedisData[] = []
  #starts = 1

  constructor(
    readonly script: ScriptModel,
    private readonly random: Random,
  ) {}

  /** A frozen server runs the command later, even if the client has closed the connection by then. */
  receive(received: Received): void {
    if (this.status === 'frozen') this.#queue.push(received)
    else if (this.status === 'up') this.#run(received)
  }

  /** Removes all keys. The connections stay open. */
  flush(): void {
    this.script.data = anEmptyDatabase()
    this.#snapshots = []
  }

  freeze(): void {
    this.status = 'frozen'
  }

  thaw(): void {
    this.status = 'up'
    for (const received of this.#queue.splice(0)) this.#run(received)
  }

  kill(): void {
    this.status = 'down'
    this.isLoading = false
    this.#queue = []
    for (const client of this.clients) client.loseConnection()
  }

  /** Another process, as after a failover. */
  start(recovered: Recovered): void {
    this.#starts += 1
    this.script.runId = `run${this.#starts}`
    if (recovered === 'nothing') this.script.data = anEmptyDatabase()
    if (recovered === 'behind' && this.#snapshots.length > 0) this.script.data = this.random.pick(this.#snapshots)
    this.#snapshots = []
    this.status = 'up'
  }

  #run({ command, reply }: Received): void {
    if (this.isLoading) return reply({ error: new ReplyError('LOADING Redis is loading the dataset in memory') })
    const { hashes, epochs, replicas, restoring } = this.script.data
    this.#snapshots.push({
      hashes: new Map(hashes),
      epochs: new Map(epochs),
      replicas: new Map(replicas),
      restoring: new Map(restoring),
    })
    if (this.#snapshots.length > SNAPSHOTS) this.#snapshots.shift()
    reply({ value: command(this.script) })
  }
}
