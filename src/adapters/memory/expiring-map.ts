/**
 * A map whose entries each have an end. It does not grow without bound: every `set` looks at the two entries that it has
 * not looked at for longest and drops those that have ended, so that dead entries leave faster than new ones come.
 */
export class ExpiringMap<Value> {
  readonly #entries = new Map<string, { readonly value: Value; readonly endMs: number }>()

  get size(): number {
    return this.#entries.size
  }

  get(key: string, nowMs: number): Value | undefined {
    const entry = this.#entries.get(key)
    return entry && nowMs < entry.endMs ? entry.value : undefined
  }

  set(key: string, value: Value, endMs: number, nowMs: number): void {
    this.#entries.delete(key)
    this.#sweep(nowMs)
    this.#entries.set(key, { value, endMs })
  }

  #sweep(nowMs: number): void {
    for (const [key, entry] of [...take(this.#entries, 2)]) {
      this.#entries.delete(key)
      if (nowMs < entry.endMs) this.#entries.set(key, entry)
    }
  }
}

function* take<Item>(items: Iterable<Item>, count: number): Generator<Item> {
  for (const item of items) {
    if (count-- <= 0) return
    yield item
  }
}
