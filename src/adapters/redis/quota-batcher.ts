import { OUTCOME_NAMES, QUOTA_SCRIPT } from './quota-script.js'
import type { RedisClient } from './redis-client.js'
import { defineScript } from './redis-client.js'
import type { RedisKeys } from './redis-keys.js'

/** The outcome, the time in milliseconds and the values of all FIELDS. */
export type ScriptReply = readonly [outcome: number, ...numbers: number[]]

interface PendingOperation {
  readonly keyId: string
  readonly args: string
  readonly resolve: (reply: ScriptReply) => void
  readonly reject: (error: unknown) => void
}

type Group = [PendingOperation, ...PendingOperation[]]

/** Sends a command to the node of a shard: `call` of the circuit breaker, or `callThrough` during a recovery. Rejects if Redis does not respond in time. */
export type RedisCall = <Reply>(command: () => Promise<Reply>, shard: number) => Promise<Reply>

/** The script blocks Redis for about a millisecond when it executes this number of operations. */
const MAX_BATCH_SIZE = 100

/**
 * Sends the operations that are queued in one callback of the event loop together: one call of the quota script per shard, or one per 100
 * operations. Redis executes the operations of a batcher on a key in their order.
 */
export class QuotaBatcher {
  /** Resolves to the replies, as JSON. */
  readonly #script: (keyCount: number, ...keysAndArgs: string[]) => Promise<string>
  /** The operations of this callback, by shard. */
  readonly #pending = new Map<number, PendingOperation[]>()

  constructor(
    client: RedisClient,
    private readonly keys: RedisKeys,
    private readonly call: RedisCall,
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
    try {
      const groups = groupEqualOperations(operations)
      const keys = [this.keys.epoch(shard), ...groups.map(([{ keyId }]) => this.keys.quota(keyId))]
      const args = `[${groups.map(([operation]) => operation.args).join(',')}]`
      const repetitions = JSON.stringify(groups.map(({ length }) => length))
      const execute = async () => parseReplies(await this.#script(keys.length, ...keys, args, repetitions), operations.length)
      const replies = await this.call(execute, shard)
      for (const [index, { resolve }] of groups.flat().entries()) resolve(replies[index] as ScriptReply)
    } catch (error) {
      for (const { reject } of operations) reject(error)
    }
  }
}

/** Throws if the script did not return `count` replies. */
function parseReplies(json: string, count: number): ScriptReply[] {
  const replies = JSON.parse(json) as ScriptReply[]
  if (replies.length === count && replies.every(([outcome]) => outcome in OUTCOME_NAMES)) return replies
  throw new Error(`The quota script returned an unexpected reply: ${json.slice(0, 100)}`)
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
