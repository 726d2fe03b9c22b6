import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect } from 'chai'
import { LogOutput } from '../../../src/adapters/node/log-output.js'
import { until } from '../../support/until.js'

const MIB = 1024 * 1024

/** A pipe with room for some bytes. */
class SlowPipe {
  /** The texts that were written, one per system call. */
  readonly writes: string[] = []
  room = Infinity
  error: Error | undefined
  readonly #bytes: Buffer[] = []

  write = (bytes: Uint8Array): number => {
    if (this.error) throw this.error
    if (this.room === 0) throw systemError('EAGAIN')
    const written = Buffer.from(bytes.subarray(0, this.room))
    this.room -= written.length
    this.#bytes.push(written)
    this.writes.push(written.toString())
    return written.length
  }

  get text(): string {
    return Buffer.concat(this.#bytes).toString()
  }
}

function systemError(code: string): Error {
  return Object.assign(new Error(code), { code })
}

describe('the output of the log', () => {
  let pipe: SlowPipe
  let output: LogOutput

  beforeEach(() => {
    pipe = new SlowPipe()
    output = new LogOutput(pipe.write)
  })

  const writeLines = (count: number, from = 0) => {
    const lines = Array.from({ length: count }, (_, index) => `line ${from + index} – ä🐕\n`)
    for (const line of lines) output.write(line)
    return lines.join('')
  }

  it('writes all lines of one turn of the event loop with one system call', async () => {
    const first = writeLines(1_000)
    expect(pipe.writes).to.deep.equal([])
    await nextTurn()
    const second = writeLines(1_000, 1_000)
    await nextTurn()
    expect(pipe.writes).to.deep.equal([first, second])
  })

  it('neither loses nor reorders lines if the reader is slow, even if a write ends within a character', async () => {
    let text = ''
    for (let turn = 0; turn < 20; turn += 1) {
      pipe.room = 7
      text += writeLines(1, turn)
      await nextTurn()
    }
    expect(pipe.text.length).to.be.below(text.length)
    pipe.room = Infinity
    await until('all lines are written', () => pipe.text === text)
  })

  it('writes everything before the process exits', () => {
    const text = writeLines(3)
    output.end()
    expect(pipe.writes).to.deep.equal([text])
  })

  it('waits for a slow reader before the process exits', () => {
    let attempts = 0
    let written = ''
    const slow = new LogOutput((bytes) => {
      attempts += 1
      if (attempts % 3 !== 0) throw systemError('EAGAIN')
      written += Buffer.from(bytes.subarray(0, 2)).toString()
      return Math.min(2, bytes.length)
    })
    slow.write('abcdefg\n')
    slow.end()
    expect(written).to.equal('abcdefg\n')
  })

  it('lets the process exit within seconds if the reader takes nothing', () => {
    pipe.room = 0
    writeLines(1)
    const startedMs = performance.now()
    output.end()
    expect(performance.now() - startedMs).to.be.within(1_900, 8_000)
    expect(pipe.writes).to.deep.equal([])
  })

  it('keeps 16 MiB for a slow reader, and says where lines are missing', async () => {
    pipe.room = 0
    const line = `${'x'.repeat(MIB - 1)}\n`
    for (let count = 0; count < 40; count += 1) {
      output.write(line)
      await nextTurn()
    }
    pipe.room = Infinity
    await until('the kept lines are written', () => pipe.text !== '')
    output.write('after\n')
    await nextTurn()

    const lines = pipe.text.split('\n')
    const [gap = '', after] = lines.slice(-3)
    expect(output.discardedLines).to.equal(40 - (lines.length - 3))
    expect(lines.slice(0, -3).every((kept) => kept.length === MIB - 1)).to.equal(true)
    expect(lines.length - 3).to.be.within(16, 18)
    expect(JSON.parse(gap)).to.include({ level: 40 }).and.have.property('msg').that.includes('missing')
    expect(after).to.equal('after')
  })

  for (const code of ['EPIPE', 'ENOSPC']) {
    it(`discards lines while writing fails with ${code}, counts them, and says where they are missing`, async () => {
      pipe.error = systemError(code)
      writeLines(2)
      await nextTurn()
      writeLines(1)
      await nextTurn()
      pipe.error = undefined
      output.write('after\n')
      await nextTurn()
      const [gap = '', ...rest] = pipe.text.split('\n')
      expect(JSON.parse(gap)).to.include({ level: 40 }).and.have.property('msg').that.includes('missing')
      expect(rest).to.deep.equal(['after', ''])
      expect(output.discardedLines).to.equal(3)
    })
  }

  it('says where lines are missing on a line of its own, even if the end of a line is missing', async () => {
    pipe.room = 7
    writeLines(1)
    await nextTurn()
    pipe.error = systemError('ENOSPC')
    output.end()
    Object.assign(pipe, { error: undefined, room: Infinity })
    output.write('after\n')
    output.end()
    const [cut, gap = '', after] = pipe.text.split('\n')
    expect([cut, after]).to.deep.equal(['line 0 ', 'after'])
    expect(JSON.parse(gap)).to.include({ level: 40 })
  })

  it('says before the process exits that lines are missing', async () => {
    pipe.error = systemError('ENOSPC')
    writeLines(1)
    await nextTurn()
    pipe.error = undefined
    output.end()
    expect(JSON.parse(pipe.text)).to.include({ level: 40 })
  })
})
