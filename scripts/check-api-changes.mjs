// Lists what docs/openapi.json changes since the last release, whose document is docs/openapi-released.json, and fails if a change could
// break a client of a stable operation. docs/api/versioning.md says what clients can rely on.
// Usage: check-api-changes.mjs [RELEASED CURRENT]
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const [releasedPath = 'docs/openapi-released.json', currentPath = 'docs/openapi.json'] = process.argv.slice(2)
const [released, current] = [releasedPath, currentPath].map((path) => JSON.parse(readFileSync(path, 'utf8')))

/** JSON pointers of operations that may change. They are removed from the released document, so the diff reports them as additions. */
const ignoredPointers = []
for (const [path, operations] of Object.entries(released.paths)) {
  for (const [method, operation] of Object.entries(operations)) {
    const currentOperation = current.paths[path]?.[method]
    const isRemovedOnTime = !currentOperation && Date.parse(operation['x-sunset']) <= Date.now()
    if (operation['x-stability'] || isRemovedOnTime) {
      ignoredPointers.push(`#/paths/${path.replaceAll('~', '~0').replaceAll('/', '~1')}/${method}`)
      delete operations[method]
    } else if (currentOperation?.['x-stability']) {
      report('breaking', `${method.toUpperCase()} ${path}`, `A stable operation became ${currentOperation['x-stability']}.`)
    }
  }
  if (!current.paths[path] && Object.keys(operations).length === 0) delete released.paths[path]
}

for (const change of diff(released)) {
  if (ignoredPointers.includes(change.path)) continue
  const reasons = findReasons(change)
  if (reasons.length === 0) report(change.impact, change.path, change.kind)
  for (const reason of reasons) report('breaking', change.path, reason)
}

function diff(document) {
  const folder = mkdtempSync(join(tmpdir(), 'petstore-api-changes-'))
  try {
    const path = join(folder, 'released.json')
    writeFileSync(path, JSON.stringify(document))
    const { stdout, stderr } = spawnSync('node_modules/.bin/redocly', ['diff', path, currentPath, '--format=json', '--fail-on=none'], {
      encoding: 'utf8',
      maxBuffer: Infinity,
      env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    })
    if (!stdout) throw new Error(`redocly diff failed: ${stderr}`)
    return JSON.parse(stdout).changes
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Returns why a change could break a client. Redocly has no rules for the first two kinds. */
function findReasons({ kind, typeName, path, property, base, verdicts }) {
  if (kind === 'removed' && /\/requestBody\/.*\/properties\/[^/]+$/.test(path)) return ['The service would ignore this request field.']
  if (typeName === 'Header' && property === 'required' && base.value === true) return ['The response header became optional.']
  return verdicts.map(({ message }) => message)
}

function report(impact, place, text) {
  console.log(`${impact.padEnd(8)}  ${place}: ${text}`)
  if (impact === 'breaking') process.exitCode = 1
}
