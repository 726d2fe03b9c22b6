// Makes the latest results the published ones, and writes their tables to docs/performance.md: node bench/publish.mjs. Takes no arguments.
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { formatGoals, formatMachine, formatScene } from './report.mjs'
import { SCENES } from './scenes.mjs'

const MIN_ROUNDS = 5

const toPath = (relative) => fileURLToPath(new URL(relative, import.meta.url))
const latest = JSON.parse(readFileSync(toPath('results/latest.json'), 'utf8'))
const isComplete = SCENES.every(({ name }) => latest.scenes.some((scene) => scene.name === name))
if (!isComplete || latest.options.rounds < MIN_ROUNDS) {
  console.error(`Only the results of a run with all scenes and at least ${MIN_ROUNDS} rounds are published`)
  process.exit(1)
}
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
