import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { moveToMinuteStart } from '../support/quota-steps.js'
import type { TestApi } from '../support/api.js'
import { startApi } from '../support/api.js'
import { endProcesses, startService } from '../support/process.js'

/** Tests run in the root of the repository. */
const read = (path: string) => readFileSync(path, 'utf8')

const API_PAGES = readdirSync('docs/api').map((file) => `docs/api/${file}`)

/** The programs on these pages have their own tests. */
const PAGES_WITH_PROGRAMS = ['docs/api/clients.md', 'docs/api/retries.md', 'docs/api/retry-settings.md']
const PAGES = ['README.md', ...API_PAGES.filter((page) => !PAGES_WITH_PROGRAMS.includes(page))]

interface Example {
  readonly command: string
  /** `http`: the last response that the command prints, without some of its headers. `text`: all that it prints. */
  readonly kind: 'http' | 'text'
  readonly output: string
}

function listExamples(page: string): Example[] {
  const blocks = read(page).matchAll(/```(?:sh|bash)\n([^`]*)```\n\n```(http|text)\n([^]*?)```/g)
  return [...blocks].map(([, command, kind, output]) => ({ command, kind, output }) as Example)
}

interface Response {
  readonly statusLine: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

function parseResponse(text: string): Response {
  const [head = '', body = ''] = text.replaceAll('\r', '').split('\n\n')
  const [statusLine = '', ...lines] = head.split('\n')
  return { statusLine, headers: Object.fromEntries(lines.map((line) => line.split(/: (.*)/s).slice(0, 2))), body: body.trim() }
}

/** Replaces what differs between runs. */
function normalize(text: string): string {
  return text
    .replace(/cursor=[\w-]+/g, 'cursor=…')
    .replace(/(X-RateLimit-Reset|Retry-After): \d+/g, '$1: …')
    .replace(/;t=\d+/g, ';t=…')
    .replace(/"resetsAt":"[^"]+"/g, '"resetsAt":"…"')
    .replace(/X-Request-Id: [\w-]+/g, 'X-Request-Id: …')
}

/** Expects the status line, every header that the docs show, and the body. */
function expectDocumented(documented: string, actual: string): void {
  const expected = parseResponse(normalize(documented))
  const { statusLine, headers, body } = parseResponse(normalize(actual))
  const shown = Object.fromEntries(Object.keys(expected.headers).map((name) => [name, headers[name]]))
  expect({ statusLine, headers: shown, body }).to.deep.equal(expected)
}

describe('The examples in the docs', function () {
  this.timeout(20_000)
  after(endProcesses)
  let api: TestApi
  let apiKey: string
  let folder: string

  beforeEach(async () => {
    api = await startApi()
    apiKey = (await api.issueKey('free')).secret
    folder = mkdtempSync(join(tmpdir(), 'petstore-docs-'))
  })
  afterEach(async () => {
    rmSync(folder, { recursive: true })
    await api.stop()
  })

  async function run(command: string): Promise<string> {
    const env = { PATH: process.env['PATH'], API_KEY: apiKey }
    const script = command.replaceAll('http://127.0.0.1:8080', api.url)
    return (await promisify(execFile)('bash', ['-c', script], { cwd: folder, env })).stdout
  }

  for (const page of PAGES) {
    it(`of ${page} print what the page shows, one after the other against a fresh service`, async () => {
      const examples = listExamples(page)
      const responses = read(page)
        .replace(/<!-- banned.*-->\n```http/g, '')
        .match(/```http/g)
      expect(examples.filter(({ kind }) => kind === 'http')).to.have.length(responses?.length ?? 0)
      for (const { command, kind, output } of examples) {
        const printed = await run(command)
        if (kind === 'http') expectDocumented(output, printed.slice(printed.lastIndexOf('HTTP/1.1 ')))
        else expect(normalize(printed), command).to.equal(normalize(output))
      }
    })
  }

  it('open every page about the API', () => {
    const opened = /^# .+\n\n(?:[^`#\n].*\n+){0,3}```(sh|bash)\n/
    for (const page of API_PAGES) expect(read(page), page).to.match(opened)
  })

  it('show in the README what the service prints when it starts', async () => {
    const [, shown = ''] = /```text\n(Pet Store, [^]*?)```/.exec(read('README.md')) ?? []
    const withoutSecretsAndPorts = (text: string) => text.replace(/pst_live_[\w…]+/g, 'pst_live_…').replace(/:\d{4,5}\b/g, ':…')
    const { notice } = await startService()
    expect(withoutSecretsAndPorts(notice.trim())).to.equal(withoutSecretsAndPorts(shown.trim()))
  })

  describe('of bans', () => {
    const page = read('docs/api/rate-limits.md')
    const list = () => run('curl -si -H "Authorization: Bearer $API_KEY" http://127.0.0.1:8080/v1/pets')
    const documented = (mark: string) => new RegExp(`<!-- ${mark} -->\n\`\`\`http\n([^]*?)\`\`\``).exec(page)?.[1] ?? ''
    const sendMany = async (count: number) => {
      for (let sent = 0; sent < count; sent++) await api.send('/v1/pets?limit=1', { key: apiKey })
    }
    const retryAfterSeconds = (response: string) => Number(/^Retry-After: (\d+)/m.exec(response)?.[1])

    /** Causes the first rejection and all strikes except the last. */
    async function sendAllButTheLastStrike(): Promise<void> {
      await sendMany(1)
      api.clock.advanceMs(1500)
      await sendMany(59)
    }

    beforeEach(() => moveToMinuteStart(api, apiKey))

    it('show the response to a banned key', async () => {
      await sendMany(60)
      await sendAllButTheLastStrike()
      const banned = await list()
      expectDocumented(documented('banned'), banned)
      expect(retryAfterSeconds(banned)).to.equal(60)
    })

    it('show the response to a banned key that has used up its day quota: the client has to wait until 00:00 UTC', async () => {
      for (let left = 1000; left > 0; left -= 60) {
        await sendMany(Math.min(60, left))
        api.clock.advanceSeconds(60)
      }
      await sendAllButTheLastStrike()
      const banned = await list()
      expectDocumented(documented('banned, day exhausted'), banned)
      const secondsToMidnight = Math.ceil((Date.UTC(2026, 10, 21) - api.clock.nowMs()) / 1000)
      expect(retryAfterSeconds(banned)).to.equal(secondsToMidnight)
      expect(banned).to.include(`X-RateLimit-Reset: ${Date.UTC(2026, 10, 21) / 1000}\r\n`)

      api.clock.advanceSeconds(61)
      const afterTheBan = await list()
      expect(afterTheBan).to.include('"daily_quota_exceeded"').and.include('X-RateLimit-Limit: 1000\r\n').and.include(';r=60;')
      expect(retryAfterSeconds(afterTheBan)).to.equal(secondsToMidnight - 61)
    })
  })
})
