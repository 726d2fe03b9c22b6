// Measures the time from the start of `node` to the first 200 for an authenticated request: node bench/start.mjs [runs]
// Build first. Uses only the loopback interface. Makes at most 200 runs, one at a time.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('../dist/src/main.js', import.meta.url))
const RUN_TIMEOUT_MS = 15_000

const runs = Number(process.argv[2] ?? 20)
if (!Number.isInteger(runs) || runs < 1 || runs > 200) fail('usage: node bench/start.mjs [runs, 1 to 200]')
if (!existsSync(MAIN)) fail(`${MAIN} does not exist: run 'npm run build' first`)

// The first run fills the file cache and is not measured.
await timeToFirst200()
const milliseconds = []
for (let run = 0; run < runs; run++) milliseconds.push(await timeToFirst200())

const sorted = milliseconds.toSorted((a, b) => a - b)
const median = (sorted[Math.floor((runs - 1) / 2)] + sorted[Math.ceil((runs - 1) / 2)]) / 2
console.log(
  `node ${process.version}, ${runs} runs: first 200 after ${median.toFixed(0)} ms (median), ${sorted.at(-1).toFixed(0)} ms (worst)`,
)

async function timeToFirst200() {
  const startedMs = performance.now()
  const env = { PATH: process.env.PATH, PORT: '0', ADMIN_PORT: '0' }
  const child = spawn(process.execPath, [MAIN, 'serve'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const closed = once(child, 'close')
  const timer = setTimeout(() => child.kill('SIGKILL'), RUN_TIMEOUT_MS)
  try {
    const [, key, url] = await readCurlCommand(child.stdout)
    const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } })
    const elapsedMs = performance.now() - startedMs
    if (response.status !== 200) throw new Error(`The first response was ${response.status} instead of 200`)
    return elapsedMs
  } finally {
    clearTimeout(timer)
    child.kill('SIGKILL')
    await closed
  }
}

/** Returns the key and the URL of the `curl` command at the end of the start-up notice. */
async function readCurlCommand(stdout) {
  let text = ''
  for await (const chunk of stdout.iterator({ destroyOnReturn: false })) {
    text += chunk
    const command = /^ +curl .*Bearer (\w+)' (http:\S+)\n/m.exec(text)
    if (command) return command
  }
  throw new Error(`The service ended before it listened:\n${text}`)
}

function fail(message) {
  console.error(message)
  process.exit(2)
}
