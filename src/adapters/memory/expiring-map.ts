interface Entry<Value> {
  readonly value: Value
  readonly expiresAtMs: number
}

/**
 * A map whose entries expire. Each `set` checks the next two entries of a cyclic iteration and removes those that have expired, so
 * expired entries are removed faster than new ones are added.
 */
export class ExpiringMap<Value> {
  readonly #entries = new Map<string, Entry<Value>>()
  /** The iterator of a Map also visits entries that are added during the iteration. */
  #iterator = this.#entries.entries()

  get size(): number {
    return this.#entries.size
  }

  get(key: string, nowMs: number): Value | undefined {
    const entry = this.#entries.get(key)
    return entry && nowMs < entry.expiresAtMs ? entry.value : undefined
  }

  set(key: string, value: Value, expiresAtMs: number, nowMs: number): void {
    this.#entries.set(key, { value, expiresAtMs })
    this.#checkNext(nowMs)
    this.#checkNext(nowMs)
  }

  #checkNext(nowMs: number): void {
    const step = this.#iterator.next()
    if (step.done) {
      this.#iterator = this.#entries.entries()
      return
    }
    const [key, { expiresAtMs }] = step.value
    if (nowMs >= expiresAtMs) this.#entries.delete(key)
  }
}
