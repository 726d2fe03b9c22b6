// Keeps the tables in the docs what the code says they are: `write` writes them, `check` fails if one differs. Needs a build.
import { readFileSync, writeFileSync } from 'node:fs'
import { ERROR_CATALOGUE } from '../dist/src/adapters/http/error-catalogue.js'

const { plans } = JSON.parse(readFileSync('config/plans.json', 'utf8'))
const limit = (number) => number?.toLocaleString('en') ?? 'custom'
const planRows = Object.entries(plans).map(([name, { limits }]) => [capitalize(name), limit(limits?.minute), limit(limits?.day)])

const TABLES = [
  { file: 'README.md', mark: 'plans', rows: planRows },
  { file: 'docs/api/rate-limits.md', mark: 'plans', rows: planRows },
  {
    file: 'docs/api/errors.md',
    mark: 'errors',
    rows: Object.entries(ERROR_CATALOGUE).map(([code, { status, message }]) => [`\`${code}\``, status, message]),
  },
]

for (const { file, mark, rows } of TABLES) {
  const text = readFileSync(file, 'utf8')
  // The mark, the two lines of the table's head, its rows, and the closing mark.
  const table = new RegExp(`(<!-- ${mark}:.*-->\n\\|.*\n\\|.*\n)[^]*?(<!-- /${mark} -->)`)
  if (!table.test(text)) throw new Error(`${file} has no table that is marked ${mark}`)
  const lines = rows.map((cells) => `| ${cells.join(' | ')} |\n`).join('')
  const updated = text.replace(table, (_, head, end) => head + lines + end)
  if (updated === text) continue
  if (process.argv[2] === 'write') writeFileSync(file, updated)
  else {
    console.error(`The table of ${mark} in ${file} differs from the code. Run 'npm run generate', review the difference and commit it.`)
    process.exitCode = 1
  }
}

function capitalize(name) {
  return name[0].toUpperCase() + name.slice(1)
}
