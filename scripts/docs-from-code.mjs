// Keeps tables, error messages and lists of files in the docs up to date: `write` writes them, `check` fails if one is outdated. Needs a build.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname } from 'node:path/posix'
import { ERROR_CATALOGUE } from '../dist/src/adapters/http/errors/error-catalogue.js'
import { formatSettingsTable } from '../dist/src/settings.js'
import { findImportClosure } from '../dist/test/support/import-closure.js'

const { plans } = JSON.parse(readFileSync('config/plans.json', 'utf8'))
const limit = (number) => number?.toLocaleString('en') ?? 'custom'

const row = (...cells) => `| ${cells.join(' | ')} |`

/** The rows of each table, without its header. */
const TABLES = {
  plans: Object.entries(plans).map(([name, { limits }]) =>
    row(name[0].toUpperCase() + name.slice(1), limit(limits?.minute), limit(limits?.day)),
  ),
  errors: Object.entries(ERROR_CATALOGUE).map(([code, { status, message }]) => row(`[\`${code}\`](#${code})`, status, message)),
  settings: formatSettingsTable().split('\n').slice(2),
}

const PAGES = ['docs/api', 'docs/operations'].flatMap((folder) => readdirSync(folder).map((name) => `${folder}/${name}`))

for (const file of ['README.md', 'docs/architecture.md', ...PAGES]) {
  const text = readFileSync(file, 'utf8')
  const updated = fillClosures(fillMessages(fillTables(text)))
  if (updated === text) continue
  if (process.argv[2] === 'write') writeFileSync(file, updated)
  else {
    console.error(`${file} is out of date. Run 'npm run generate', review the difference and commit it.`)
    process.exitCode = 1
  }
}

/** Fills each table between `<!-- name: … -->` and `<!-- /name -->`, below its header of two lines. */
function fillTables(text) {
  return text.replace(/(<!-- (\w+): .*-->\n\|.*\n\|.*\n)[^]*?(<!-- \/\2 -->)/g, (_, head, name, end) => {
    if (!(name in TABLES)) throw new Error(`Unknown table: ${name}`)
    return head + TABLES[name].map((line) => `${line}\n`).join('') + end
  })
}

/** Updates the messages in example responses, except those that name parameters or fields. */
function fillMessages(text) {
  return text.replace(/\{"code":"(\w+)","message":".*","status":\d+\}/g, (body, code) => {
    if (code === 'validation_failed' || code === 'invalid_parameter') return body
    const { message, status } = ERROR_CATALOGUE[code]
    return JSON.stringify({ code, message, status })
  })
}

/** Fills in the files between `<!-- closure of file file -->` and `<!-- /closure -->`, grouped by folder. */
function fillClosures(text) {
  return text.replace(/(<!-- closure of (.+) -->\n)[^]*?(<!-- \/closure -->)/g, (_, head, entries, end) => {
    const files = findImportClosure(entries.split(' '))
    const folders = [...new Set(files.map((file) => dirname(file)))]
    const listFilesIn = (folder) => files.filter((file) => dirname(file) === folder).map((file) => basename(file))
    const lines = folders.map((folder) => `- \`${folder}/\`: ${listFilesIn(folder).join(', ')}\n`)
    return `${head}${lines.join('')}${end}`
  })
}
