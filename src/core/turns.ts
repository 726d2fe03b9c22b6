interface Waiter {
  readonly wake: () => void
  readonly giveUp: (reason: unknown) => void
}

interface Line {
  underWay: number
  readonly waiting: Waiter[]
}

/** Lets tasks of one name run side by side as far as there is room; the others wait in a line, and each end wakes the first of them. */
export class Turns {
  readonly #lines = new Map<string, Line>()

  underWay(name: string): number {
    return this.#lines.get(name)?.underWay ?? 0
  }

  /** Waits until a task ends, or the one before in the line turns out to need no turn. Rejects when a task fails, as its reason says. */
  wait(name: string): Promise<void> {
    return new Promise((wake, giveUp) => this.#line(name).waiting.push({ wake, giveUp }))
  }

  /** For who was woken and needs no turn after all, or sees more room: the next one is woken. */
  pass(name: string): void {
    this.#lines.get(name)?.waiting.shift()?.wake()
  }

  async take<Value>(name: string, task: () => Promise<Value>): Promise<Value> {
    const line = this.#line(name)
    line.underWay += 1
    try {
      return await task()
    } catch (error) {
      for (const { giveUp } of line.waiting.splice(0)) giveUp(error)
      throw error
    } finally {
      line.underWay -= 1
      this.pass(name)
      if (line.underWay === 0 && line.waiting.length === 0) this.#lines.delete(name)
    }
  }

  #line(name: string): Line {
    const line = this.#lines.get(name) ?? { underWay: 0, waiting: [] }
    this.#lines.set(name, line)
    return line
  }
}
