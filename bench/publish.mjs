// Makes the latest results the published ones, and writes their tables to docs/performance.md: node bench/publish.mjs
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { formatGoals, formatMachine, formatScene } from './report.mjs'

const toPath = (relative) => fileURLToPath(new URL(relative, import.meta.url))
for (const type of ['json', 'svg']) copyFileSync(toPath(`results/latest.${type}`), toPath(`results/published.${type}`))

const PAGE = toPath('../docs/performance.md')
const results = JSON.parse(readFileSync(toPath('results/published.json'), 'utf8'))
const { scenes } = results
const chart = '![Requests per second of each server, by scene](../bench/results/published.svg)\n'
const figures = [formatMachine(results), formatGoals(scenes), chart, ...scenes.map(formatScene)].join('\n')
const page = readFileSync(PAGE, 'utf8')
const updated = page.replace(/(<!-- figures: .*-->\n)[^]*?(<!-- \/figures -->)/, (_, start, end) => `${start}${figures}${end}`)
if (updated === page) throw new Error(`${PAGE} has no part for the figures, or they are already there`)
writeFileSync(PAGE, updated)
