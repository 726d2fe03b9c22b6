/** Holds calls of `pass` until it is opened. */
export class Gate {
  /** The number of calls of `pass` so far. */
  heldCount = 0
  open: () => void = () => undefined
  readonly #opened = new Promise<void>((resolve) => (this.open = resolve))

  async pass(): Promise<void> {
    this.heldCount += 1
    await this.#opened
  }
}
