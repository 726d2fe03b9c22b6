import { QUOTA_SCRIPT } from './quota-script.js'
import type { RedisClient } from './redis-client.js'
import { defineScript } from './redis-client.js'
import type { RedisKeys } from './redis-keys.js'

/** The outcome, the time in milliseconds and the values of all FIELDS. */
export type ScriptReply = readonly number[]

interface Call {
  readonly keyId: string
  readonly args: string
  readonly resolve: (reply: ScriptReply) => void
  readonly reject: (error: unknown) => void
}

/** The script blocks Redis for about a millisecond when it executes this number of calls. */
const MAX_CALLS = 100

/**
 * Sends the calls of the quota script that are made in one turn of the event loop together, one command per shard. Redis executes the calls for
 * a key in their order.
 */
export class QuotaCalls {
  readonly #script: (keyCount: number, ...keysAndArgs: string[]) => Promise<ScriptReply[]>
  /** The calls of this turn, by shard. */
  readonly #pending = new Map<number, Call[]>()

  constructor(
    client: RedisClient,
    private readonly keys: RedisKeys,
  ) {
    this.#script = defineScript(client, 'petstoreQuota', { lua: QUOTA_SCRIPT })
  }

  /** `args`: the arguments of the script for one key, as JSON. Errors of the Redis client are passed on. */
  call(keyId: string, args: string): Promise<ScriptReply> {
    return new Promise((resolve, reject) => {
      if (this.#pending.size === 0) setImmediate(() => this.#sendAll())
      const shard = this.keys.getShard(keyId)
      const calls = this.#pending.get(shard) ?? []
      calls.push({ keyId, args, resolve, reject })
      this.#pending.set(shard, calls)
    })
  }

  #sendAll(): void {
    for (const [shard, calls] of this.#pending) {
      for (let start = 0; start < calls.length; start += MAX_CALLS) void this.#send(shard, calls.slice(start, start + MAX_CALLS))
    }
    this.#pending.clear()
  }

  async #send(shard: number, calls: readonly Call[]): Promise<void> {
    const groups = groupEqualCalls(calls)
    const firsts = groups.flatMap(([first]) => first ?? [])
    const keys = [this.keys.epoch(shard), ...firsts.map(({ keyId }) => this.keys.quota(keyId))]
    const args = `[${firsts.map((call) => call.args).join(',')}]`
    const counts = JSON.stringify(groups.map(({ length }) => length))
    try {
      const replies = await this.#script(keys.length, ...keys, args, counts)
      for (const [index, { resolve }] of groups.flat().entries()) resolve(replies[index] ?? [])
    } catch (error) {
      for (const { reject } of calls) reject(error)
    }
  }
}

/** Groups equal calls for a key, unless there is a different one in between. */
function groupEqualCalls(calls: readonly Call[]): Call[][] {
  const groups: Call[][] = []
  const lastByKey = new Map<string, Call[]>()
  for (const call of calls) {
    const last = lastByKey.get(call.keyId)
    if (last?.[0]?.args === call.args) {
      last.push(call)
    } else {
      const group = [call]
      lastByKey.set(call.keyId, group)
      groups.push(group)
    }
  }
  return groups
}
