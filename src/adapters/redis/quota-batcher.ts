import { QUOTA_SCRIPT } from './quota-script.js'
import type { RedisClient } from './redis-client.js'
import { defineScript } from './redis-client.js'
import type { RedisKeys } from './redis-keys.js'

/** The outcome, the time in milliseconds and the values of all FIELDS. */
export type ScriptReply = readonly number[]

/** `args`: the arguments of the script for one key, as JSON. */
interface PendingOperation {
  readonly keyId: string
  readonly args: string
  readonly resolve: (reply: ScriptReply) => void
  readonly reject: (error: unknown) => void
}

type Group = [PendingOperation, ...PendingOperation[]]

/** Sends a command for a shard, within the rules of the circuit breaker. Throws `RedisUnavailable`. */
export type CallRedis = <Reply>(command: () => Promise<Reply>, shard: number) => Promise<Reply>

/** The script blocks Redis for about a millisecond when it executes this number of operations. */
const MAX_BATCH_SIZE = 100

/**
 * Sends the operations of one callback of the event loop together: one call of the quota script per shard, or one per 100 operations. Redis
 * executes the operations on a key in their order.
 */
export class QuotaBatcher {
  /** Resolves to the replies, as JSON. */
  readonly #script: (keyCount: number, ...keysAndArgs: string[]) => Promise<string>
  /** The operations of this callback, by shard. */
  readonly #pending = new Map<number, PendingOperation[]>()

  constructor(
    client: RedisClient,
    private readonly keys: RedisKeys,
    private readonly call: CallRedis,
  ) {
    this.#script = defineScript(client, 'petstoreQuota', QUOTA_SCRIPT)
  }

  /** Executes one operation. `args`: the arguments of the script, as JSON. Errors of `call` are passed on. */
  execute(keyId: string, args: string): Promise<ScriptReply> {
    return new Promise((resolve, reject) => {
      if (this.#pending.size === 0) process.nextTick(() => this.#sendAll())
      const shard = this.keys.getShard(keyId)
      const operations = this.#pending.get(shard) ?? []
      operations.push({ keyId, args, resolve, reject })
      this.#pending.set(shard, operations)
    })
  }

  #sendAll(): void {
    for (const [shard, operations] of this.#pending) {
      for (let start = 0; start < operations.length; start += MAX_BATCH_SIZE)
        void this.#send(shard, operations.slice(start, start + MAX_BATCH_SIZE))
    }
    this.#pending.clear()
  }

  async #send(shard: number, operations: readonly PendingOperation[]): Promise<void> {
    const groups = groupEqualOperations(operations)
    const keys = [this.keys.epoch(shard), ...groups.map(([{ keyId }]) => this.keys.quota(keyId))]
    const args = `[${groups.map(([operation]) => operation.args).join(',')}]`
    const repetitions = JSON.stringify(groups.map(({ length }) => length))
    try {
      const replies = JSON.parse(await this.call(() => this.#script(keys.length, ...keys, args, repetitions), shard)) as ScriptReply[]
      for (const [index, { resolve }] of groups.flat().entries()) resolve(replies[index] ?? [])
    } catch (error) {
      for (const { reject } of operations) reject(error)
    }
  }
}

/** Groups equal operations on a key, unless there is a different one in between. */
function groupEqualOperations(operations: readonly PendingOperation[]): Group[] {
  const groups: Group[] = []
  const lastByKey = new Map<string, Group>()
  for (const operation of operations) {
    const last = lastByKey.get(operation.keyId)
    if (last?.[0].args === operation.args) {
      last.push(operation)
    } else {
      const group: Group = [operation]
      lastByKey.set(operation.keyId, group)
      groups.push(group)
    }
  }
  return groups
}
