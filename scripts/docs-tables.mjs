// Fills the generated tables of the Markdown documents: `write` writes them, `check` fails if a table is outdated or missing.
// A table is between `<!-- name: note -->` and `<!-- /name -->`.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { settingsTable } from '../dist/src/settings.js'

const TABLES = { settings: settingsTable() }
const mode = process.argv[2]
const documents = ['README.md', ...readdirSync('docs', { recursive: true }).map((path) => `docs/${path}`)].filter((path) =>
  path.endsWith('.md'),
)

for (const [name, table] of Object.entries(TABLES)) {
  const marked = new RegExp(`(<!-- ${name}:[^\\n]*-->\\n)[^]*?(\\n<!-- /${name} -->)`)
  const places = documents.filter((path) => marked.test(readFileSync(path, 'utf8')))
  if (places.length === 0) fail(`No document has a place for the table of ${name}: <!-- ${name}: … --> and <!-- /${name} -->.`)
  for (const path of places) {
    const text = readFileSync(path, 'utf8')
    const filled = text.replace(marked, (_, begin, end) => `${begin}${table}${end}`)
    if (filled === text) continue
    if (mode === 'write') writeFileSync(path, filled)
    else fail(`The table of ${name} in ${path} is outdated. Run 'npm run generate' and commit the change.`)
  }
}

function fail(message) {
  console.error(message)
  process.exitCode = 1
}
