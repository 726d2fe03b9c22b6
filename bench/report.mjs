// Turns measured scenes into tables, as Markdown. The bench prints them, and publish.mjs writes them to docs/performance.md.
import { GOALS } from './goals.mjs'
import { summarize } from './measure.mjs'

const METRICS = {
  perSecond: { label: 'requests/s', digits: 0 },
  serverMicros: { label: 'server CPU µs', digits: 1 },
  redisMicros: { label: 'Redis CPU µs', digits: 1 },
  p50Ms: { label: 'p50 ms', digits: 2 },
  p99Ms: { label: 'p99 ms', digits: 2 },
  fixedP50Ms: { label: 'p50 ms at fixed rate', digits: 2 },
  fixedP99Ms: { label: 'p99 ms at fixed rate', digits: 2 },
  fixedServerMicros: { label: 'server CPU µs at fixed rate', digits: 1 },
  generatorPercent: { label: 'generator CPU %', digits: 0 },
  aloneP99Ms: { label: 'p99 ms of other keys alone', digits: 2 },
  besideP99Ms: { label: 'p99 ms of other keys meanwhile', digits: 2 },
  othersP99Ratio: { label: 'p99 of other keys, meanwhile : alone', digits: 2 },
  startMs: { label: 'first 200 after ms', digits: 0 },
  idleMb: { label: 'idle MB', digits: 0 },
  bytesPerKey: { label: 'Redis bytes per key', digits: 0 },
}

/** The headings of the ratios in the tables. */
const RATIO_LABELS = {
  perSecond: 'ratio, higher is better',
  serverMicros: 'ratio, lower is better',
  fixedServerMicros: 'ratio, lower is better',
  startMs: 'ratio, lower is better',
  idleMb: 'ratio, lower is better',
  bytesPerKey: 'ratio, lower is better',
}

/** The values of a metric, one per round. */
function getValues({ rounds }, metric) {
  const read = (round) => (metric === 'othersP99Ratio' ? round.besideP99Ms / round.aloneP99Ms : round[metric])
  return rounds.map(read).filter((value) => Number.isFinite(value))
}

/** The ratio within each round, because both cases of a round were measured at about the same time. */
function getRatios(ours, peer, metric) {
  const peerValues = getValues(peer, metric)
  return getValues(ours, metric).map((value, round) => value / peerValues[round])
}

/** One table per scene: medians of each case, with the ratio of the first case to it and the spread of that ratio. */
export function formatScene({ name, title, fixedPerSecond, redisOutages, cases }) {
  const [ours] = cases
  const metrics = Object.keys(METRICS).filter((metric) => cases.some((each) => getValues(each, metric).length > 0))
  const toCells = (metric, value, ratio) => (metric in RATIO_LABELS ? [value, ratio] : [value])
  const header = ['', ...metrics.flatMap((metric) => toCells(metric, METRICS[metric].label, RATIO_LABELS[metric]))]
  const rows = cases.map((each) => [
    each.name,
    ...metrics.flatMap((metric) => {
      const median = formatMedian(getValues(each, metric), METRICS[metric].digits)
      return toCells(metric, median, each === ours ? '' : formatSpread(getRatios(ours, each, metric)))
    }),
  ])
  const fixed = fixedPerSecond === undefined ? '' : ` The fixed rate is ${fixedPerSecond} requests/s.`
  const outages = redisOutages > 0 ? ` The circuit breaker of the service opened ${redisOutages} times: the machine was too busy.` : ''
  return `### ${title} (\`${name}\`)\n\nRatios are ${ours.name} divided by the row.${fixed}${outages}\n\n${formatTable([header, ...rows])}\n`
}

/** The goals of the measured scenes. */
export function formatGoals(scenes) {
  const rows = GOALS.flatMap((goal) => {
    const cases = scenes.find(({ name }) => name === goal.scene)?.cases
    if (!cases) return []
    const find = (name) => cases.find((each) => each.name === name)
    const values = goal.peer ? getRatios(find(goal.ours), find(goal.peer), goal.metric) : getValues(find(goal.ours), goal.metric)
    const { median } = summarize(values)
    const isMet = goal.atLeast === undefined ? median <= goal.atMost : median >= goal.atLeast
    const subject = goal.peer ? `${goal.ours} : ${goal.peer}` : goal.ours
    const limit = goal.atLeast === undefined ? `≤ ${format(goal.atMost)}` : `≥ ${format(goal.atLeast)}`
    return [[goal.scene, subject, METRICS[goal.metric].label, limit, formatSpread(values), isMet ? 'yes' : 'no']]
  })
  return rows.length === 0 ? '' : `### Goals\n\n${formatTable([['scene', 'of', 'metric', 'goal', 'measured', 'met'], ...rows])}\n`
}

export function formatMachine({ date, commit, machine, options, scenes }) {
  const { cpus, cpuModel, node, redis, mongodb } = machine
  const engines = [redis && `Redis ${redis}`, mongodb].filter(Boolean).join(', ')
  const count = options.rounds === 1 ? '1 round' : `${options.rounds} rounds`
  const pets = scenes.some(({ name }) => name === 'deep-page') ? `, ${options.pets} pets in deep-page` : ''
  const rounds = `${count} of ${options.seconds} s, ${options.connections} connections${pets}`
  return `${date.slice(0, 10)}, commit ${commit}, ${cpus} × ${cpuModel}, Node.js ${node}${engines && `, ${engines}`}. ${rounds}.\n`
}

function formatMedian(values, digits) {
  return values.length === 0 ? '' : summarize(values).median.toFixed(digits)
}

function formatSpread(values) {
  if (values.length === 0) return ''
  const { median, min, max } = summarize(values)
  return values.length === 1 ? format(median) : `${format(median)} (${format(min)} to ${format(max)})`
}

function format(value) {
  return value >= 100 ? value.toFixed(0) : value.toFixed(2)
}

function formatTable([header, ...rows]) {
  const toLine = (cells) => `| ${cells.join(' | ')} |`
  const widths = header.map((_, column) => Math.max(...[header, ...rows].map((cells) => cells[column].length)))
  const pad = (cells) => cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column])))
  const rule = widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(Math.max(1, width - 1))}:`))
  return [toLine(pad(header)), toLine(rule), ...rows.map((cells) => toLine(pad(cells)))].join('\n')
}
