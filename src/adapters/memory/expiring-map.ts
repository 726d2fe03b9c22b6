interface Entry<Value> {
  readonly value: Value
  readonly endMs: number
}

/**
 * A map whose entries each have an end. It does not grow without bound: every `set` looks at the next two entries on an
 * endless walk through the map and drops those that have ended, so that dead entries leave faster than new ones come.
 */
export class ExpiringMap<Value> {
  readonly #entries = new Map<string, Entry<Value>>()
  /** An iterator of a Map goes on through what is added behind it, so one walk meets every entry. */
  #walk = this.#entries.entries()

  get size(): number {
    return this.#entries.size
  }

  get(key: string, nowMs: number): Value | undefined {
    const entry = this.#entries.get(key)
    return entry && nowMs < entry.endMs ? entry.value : undefined
  }

  set(key: string, value: Value, endMs: number, nowMs: number): void {
    this.#entries.set(key, { value, endMs })
    this.#lookAtNext(nowMs)
    this.#lookAtNext(nowMs)
  }

  #lookAtNext(nowMs: number): void {
    const step = this.#walk.next()
    if (step.done) {
      this.#walk = this.#entries.entries()
      return
    }
    const [key, { endMs }] = step.value
    if (nowMs >= endMs) this.#entries.delete(key)
  }
}
