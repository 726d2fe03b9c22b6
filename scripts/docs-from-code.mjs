// Keeps tables and error messages in the docs what the code says they are: `write` writes them, `check` fails if one differs. Needs a build.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { ERROR_CATALOGUE } from '../dist/src/adapters/http/errors/error-catalogue.js'

const { plans } = JSON.parse(readFileSync('config/plans.json', 'utf8'))
const limit = (number) => number?.toLocaleString('en') ?? 'custom'

const TABLES = {
  plans: Object.entries(plans).map(([name, { limits }]) => [
    name[0].toUpperCase() + name.slice(1),
    limit(limits?.minute),
    limit(limits?.day),
  ]),
  errors: Object.entries(ERROR_CATALOGUE).map(([code, { status, message }]) => [`\`${code}\``, status, message]),
}

for (const file of ['README.md', ...readdirSync('docs/api').map((name) => `docs/api/${name}`)]) {
  const text = readFileSync(file, 'utf8')
  const updated = withMessages(withTables(text))
  if (updated === text) continue
  if (process.argv[2] === 'write') writeFileSync(file, updated)
  else {
    console.error(`${file} is not what the code generates. Run 'npm run generate', review the difference and commit it.`)
    process.exitCode = 1
  }
}

/** Fills each table between `<!-- name: … -->` and `<!-- /name -->`, below its head of two lines. */
function withTables(text) {
  return text.replace(/(<!-- (\w+): .*-->\n\|.*\n\|.*\n)[^]*?(<!-- \/\2 -->)/g, (_, head, name, end) => {
    if (!(name in TABLES)) throw new Error(`No table has the name ${name}`)
    return head + TABLES[name].map((cells) => `| ${cells.join(' | ')} |\n`).join('') + end
  })
}

/** The messages in example responses, except those that name parameters or fields. */
function withMessages(text) {
  return text.replace(/\{"code":"(\w+)","message":".*","status":\d+\}/g, (body, code) => {
    if (code === 'validation_failed' || code === 'invalid_parameter') return body
    const { message, status } = ERROR_CATALOGUE[code]
    return JSON.stringify({ code, message, status })
  })
}
