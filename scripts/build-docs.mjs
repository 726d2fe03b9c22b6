// Copies the files of the docs page next to the code that serves them: the page, the bundle of the docs component, and the licenses of the
// packages in that bundle. Compresses them, so that the service does not have to.
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

const TARGET = 'dist/src/adapters/http/openapi/docs'

/** Quality 11 makes the bundle 9 % smaller, but takes 8 s instead of 0.3 s. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }

const bundle = createRequire(import.meta.url).resolve('@scalar/api-reference/browser/standalone.js')

cpSync('src/adapters/http/openapi/docs', TARGET, { recursive: true })
cpSync(bundle, join(TARGET, 'scalar.js'))
writeFileSync(join(TARGET, 'scalar-licenses.txt'), collectLicenses())
await Promise.all(['index.html', 'start.js', 'scalar.js'].map((name) => compress(join(TARGET, name))))

async function compress(file) {
  const content = await readFile(file)
  await Promise.all([
    promisify(brotliCompress)(content, BROTLI).then((compressed) => writeFile(`${file}.br`, compressed)),
    promisify(gzip)(content, { level: constants.Z_BEST_COMPRESSION }).then((compressed) => writeFile(`${file}.gz`, compressed)),
  ])
}

/** Returns each license text once, after the names of the packages that it covers. */
function collectLicenses() {
  const packagesByText = new Map()
  for (const name of listBundledPackages()) {
    const text = findLicense(name)
    packagesByText.set(text, [...(packagesByText.get(text) ?? []), name])
  }
  const sections = [...packagesByText].map(([text, names]) => `${names.join(', ')}\n\n${text.trim()}\n`)
  return ['scalar.js contains code of these packages.\n', ...sections].join(`\n${'-'.repeat(80)}\n\n`)
}

/** Reads the statistics that the docs component ships with its bundle. */
function listBundledPackages() {
  const { modules } = JSON.parse(readFileSync(join(dirname(bundle), 'webpack-stats.json'), 'utf8'))
  const names = modules.map(({ name }) => {
    const [, installed] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(name) ?? []
    const [, sibling = 'api-reference'] = /^\.\.\/([^/]+)\//.exec(name) ?? []
    return installed ?? `@scalar/${sibling}`
  })
  return [...new Set(names)].toSorted((a, b) => (a < b ? -1 : 1))
}

function findLicense(name) {
  const folders = [`node_modules/${name}`, `node_modules/@scalar/agent-chat/node_modules/${name}`]
  // All packages of Scalar's repository have the same license, but not all of them include it.
  if (name.startsWith('@scalar/')) folders.push('node_modules/@scalar/api-client')
  for (const folder of folders.filter((each) => existsSync(each))) {
    const files = readdirSync(folder).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file))
    if (files.length > 0) return files.map((file) => readFileSync(join(folder, file), 'utf8')).join('\n')
  }
  return 'The package includes no license text. Its registry entry names the license.'
}
