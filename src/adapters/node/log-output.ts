import { writeSync } from 'node:fs'

/** Writes some of the bytes and returns their number. Throws `EAGAIN` while a slow reader has no room for more. */
export type WriteBytes = (bytes: Uint8Array) => number

/** Collected lines count one byte per character. */
const MAX_BACKLOG_BYTES = 16 * 1024 * 1024
const RETRY_MS = 5
const LINE_FEED = 0x0a
const MAX_EXIT_DELAY_MS = 2_000
const GAP = 'log lines are missing here because they could not be written'

/**
 * Writes the log to standard output. Collects the lines of one turn of the event loop and writes them with one system call.
 *
 * While the reader of a pipe is slow, the process continues, and up to 16 MiB wait in memory. Further lines are discarded, and so are lines
 * that cannot be written, for example because the reader has closed the pipe. A line in their place says so.
 */
export class LogOutput {
  #collected = ''
  /** The rest of what earlier turns collected. */
  #unwritten: Uint8Array = Buffer.alloc(0)
  #isFlushScheduled = false
  #hasDiscarded = false
  #discardedLines = 0
  #isWithinLine = false

  constructor(private readonly writeBytes: WriteBytes = writeToStandardOutput) {}

  /** The number of lines that were discarded so far. */
  get discardedLines(): number {
    return this.#discardedLines
  }

  /** Each line ends with a line feed. */
  write(lines: string): void {
    if (this.#collected.length + this.#unwritten.length > MAX_BACKLOG_BYTES) {
      this.#discard(lines)
      return
    }
    this.#reportGap()
    this.#collected += lines
    if (this.#isFlushScheduled) return
    this.#isFlushScheduled = true
    setImmediate(() => this.#flush())
  }

  /** Writes everything before the process exits. Waits for a slow reader, but no longer than 2 seconds. */
  end(): void {
    this.#reportGap()
    const deadlineMs = performance.now() + MAX_EXIT_DELAY_MS
    // Never changes, so `wait` only sleeps.
    const sleepCell = new Int32Array(new SharedArrayBuffer(4))
    while (!this.#writeAll() && performance.now() < deadlineMs) Atomics.wait(sleepCell, 0, 0, RETRY_MS)
  }

  #reportGap(): void {
    if (!this.#hasDiscarded) return
    this.#hasDiscarded = false
    this.#collected += this.#isWithinLine ? `\n${formatGap()}` : formatGap()
  }

  #flush(): void {
    this.#isFlushScheduled = !this.#writeAll()
    if (this.#isFlushScheduled) setTimeout(() => this.#flush(), RETRY_MS).unref()
  }

  /** Returns `false` if the reader has no room for the rest. */
  #writeAll(): boolean {
    try {
      while (this.#unwritten.length > 0 || this.#collected !== '') {
        if (this.#unwritten.length === 0) {
          this.#unwritten = Buffer.from(this.#collected)
          this.#collected = ''
        }
        const written = this.writeBytes(this.#unwritten)
        if (written > 0) this.#isWithinLine = this.#unwritten[written - 1] !== LINE_FEED
        this.#unwritten = this.#unwritten.subarray(written)
      }
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return false
      this.#discard(`${Buffer.from(this.#unwritten).toString('latin1')}${this.#collected}`)
      this.#unwritten = Buffer.alloc(0)
      this.#collected = ''
      return true
    }
  }

  #discard(lines: string): void {
    this.#hasDiscarded = true
    this.#discardedLines += lines.split('\n').filter((line) => line !== '' && !line.includes(GAP)).length
  }
}

/** The first access to `process.stdout` makes a pipe non-blocking. */
function writeToStandardOutput(bytes: Uint8Array): number {
  return writeSync(process.stdout.fd, bytes)
}

function formatGap(): string {
  return `${JSON.stringify({ level: 40, time: Date.now(), msg: GAP })}\n`
}
