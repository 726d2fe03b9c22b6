// Keeps docs/openapi.json what the code says it is: `write` writes it anew, `check` fails when it differs by a byte.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

const committed = 'docs/openapi.json'
const { status, stdout } = spawnSync(process.execPath, ['dist/src/main.js', 'openapi'], {
  // The committed document is that of the default settings, whatever this shell has set.
  env: { PATH: process.env.PATH },
  stdio: ['ignore', 'pipe', 'inherit'],
})

if (status !== 0 || stdout.length === 0) fail(`The command 'petstore openapi' failed, so ${committed} was neither written nor checked.`)
else if (process.argv[2] === 'write') writeFileSync(committed, stdout)
else if (!stdout.equals(committedBytes())) {
  fail(`${committed} is not what the code generates. Write it anew with 'npm run generate', look at the difference and commit it.`)
}

function committedBytes() {
  try {
    return readFileSync(committed)
  } catch (error) {
    if (error.code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}

function fail(message) {
  console.error(message)
  process.exitCode = 1
}
