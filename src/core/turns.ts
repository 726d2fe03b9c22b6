import { StoreUnavailable } from './errors.js'

interface Waiter {
  readonly wake: () => void
  readonly giveUp: (reason: unknown) => void
}

interface Line {
  underWay: number
  ended: number
  reading: number
  readonly waiting: Waiter[]
}

/**
 * Tasks of one name run side by side as far as there is room, which the callers judge. The others wait, and each end wakes the one
 * that has waited longest; it then competes with newcomers. Nothing is kept of a name without tasks and waiters.
 */
export class Turns {
  readonly #lines = new Map<string, Line>()

  /** How many names have tasks or waiters. */
  get size(): number {
    return this.#lines.size
  }

  underWay(name: string): number {
    return this.#lines.get(name)?.underWay ?? 0
  }

  /** Waits until a task ends, or one that was woken passes. Rejects with an outage that ended a task. */
  wait(name: string): Promise<void> {
    return new Promise((wake, giveUp) => this.#line(name).waiting.push({ wake, giveUp }))
  }

  /** For who was woken and needs no turn after all, or sees more room: the next one is woken. */
  pass(name: string): void {
    this.#lines.get(name)?.waiting.shift()?.wake()
    this.#dropIfIdle(name)
  }

  /**
   * Reads what tasks of this name change when they end, again if one ended meanwhile, and calls `use` at once: until it
   * waits, no task can end or begin between the value and `underWay`.
   */
  async readSettled<Value, Result>(name: string, read: () => Promise<Value>, use: (value: Value) => Promise<Result>): Promise<Result> {
    const line = this.#line(name)
    line.reading += 1
    let used: Promise<Result> | undefined
    try {
      while (!used) {
        const { ended } = line
        const value = await read()
        if (ended === line.ended) used = use(value)
      }
    } finally {
      line.reading -= 1
      this.#dropIfIdle(name)
    }
    return used
  }

  async take<Value>(name: string, task: () => Promise<Value>): Promise<Value> {
    const line = this.#line(name)
    line.underWay += 1
    try {
      return await task()
    } catch (error) {
      if (error instanceof StoreUnavailable) for (const { giveUp } of line.waiting.splice(0)) giveUp(error)
      throw error
    } finally {
      line.underWay -= 1
      line.ended += 1
      this.pass(name)
    }
  }

  #line(name: string): Line {
    const line = this.#lines.get(name) ?? { underWay: 0, ended: 0, reading: 0, waiting: [] }
    this.#lines.set(name, line)
    return line
  }

  #dropIfIdle(name: string): void {
    const line = this.#lines.get(name)
    if (line?.underWay === 0 && line.reading === 0 && line.waiting.length === 0) this.#lines.delete(name)
  }
}
