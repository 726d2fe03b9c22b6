import { writeSync } from 'node:fs'

/** Writes some of the bytes and returns their number. Throws `EAGAIN` while a slow reader has no room for more. */
export type WriteBytes = (bytes: Uint8Array) => number

/** Counts a character as one byte until it is written. */
const MAX_BACKLOG_BYTES = 16 * 1024 * 1024
const RETRY_MS = 5
const MAX_EXIT_DELAY_MS = 2_000

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

  constructor(private readonly writeBytes: WriteBytes = writeToStandardOutput) {}

  /** Each line ends with a line feed. */
  write(lines: string): void {
    if (this.#collected.length + this.#unwritten.length > MAX_BACKLOG_BYTES) {
      this.#hasDiscarded = true
      return
    }
    this.#collected += this.#hasDiscarded ? formatGap() + lines : lines
    this.#hasDiscarded = false
    if (this.#isFlushScheduled) return
    this.#isFlushScheduled = true
    setImmediate(() => this.#flush())
  }

  /** Writes everything before the process exits. Waits for a slow reader, but no longer than 2 seconds. */
  end(): void {
    const deadlineMs = performance.now() + MAX_EXIT_DELAY_MS
    const unchanged = new Int32Array(new SharedArrayBuffer(4))
    while (!this.#writeAll() && performance.now() < deadlineMs) Atomics.wait(unchanged, 0, 0, RETRY_MS)
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
        this.#unwritten = this.#unwritten.subarray(this.writeBytes(this.#unwritten))
      }
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return false
      this.#unwritten = Buffer.alloc(0)
      this.#collected = ''
      this.#hasDiscarded = true
      return true
    }
  }
}

/** The first access to `process.stdout` makes a pipe non-blocking. */
function writeToStandardOutput(bytes: Uint8Array): number {
  return writeSync(process.stdout.fd, bytes)
}

function formatGap(): string {
  return `${JSON.stringify({ level: 40, time: Date.now(), msg: 'lines of the log are missing here: they could not be written' })}\n`
}
