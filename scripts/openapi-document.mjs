// Keeps docs/openapi.json up to date. `write` generates the file. `check` fails if the file differs from what would be generated.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

const committed = 'docs/openapi.json'
const { status, stdout } = spawnSync(process.execPath, ['dist/src/main.js', 'openapi'], {
  // The committed document uses the default settings, so the settings of this shell are not passed on.
  env: { PATH: process.env.PATH },
  stdio: ['ignore', 'pipe', 'inherit'],
})

if (status !== 0 || stdout.length === 0) fail(`The command 'petstore openapi' failed, so ${committed} was neither written nor checked.`)
else if (process.argv[2] === 'write') writeFileSync(committed, stdout)
else if (!stdout.equals(committedBytes())) {
  fail(`${committed} is out of date. Run 'npm run generate', review the difference and commit it.`)
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
