// Draws what clients and operators saw during a run of faults.mjs. To draw the last run again: node bench/fault-timeline.mjs
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { init } from 'echarts'

const WIDTH = 1100
/** The names of the alerts are long. */
const LEFT = 190
const PLOTS = {
  requests: { top: 96, height: 190 },
  latency: { top: 350, height: 160 },
  alerts: { top: 574 },
}
const ALERT_HEIGHT = 18
const KINDS = [
  { name: '2xx', color: '#8fb8de', has: (status) => status >= 200 && status < 300 },
  { name: '401 and 429 (rejected)', color: '#f2c14e', has: (status) => status === 401 || status === 429 },
  { name: '503 (from the service)', color: '#d1495b', has: (status) => status === 503 },
  { name: '502 and 504 (from nginx)', color: '#6a3d9a', has: (status) => status === 502 || status === 504 },
  { name: 'connection error', color: '#222222', has: (status) => status === 0 },
]
const LATENCIES = [
  { name: 'p50', field: 'p50Ms', color: '#2463b4' },
  { name: 'p99', field: 'p99Ms', color: '#d1495b' },
]

/** Returns an SVG. Throws if a status has no place in it. */
export function drawTimeline({ perSecond, faults, alerts }) {
  const seconds = perSecond.length
  const unknown = perSecond.flatMap(({ statuses }) =>
    Object.keys(statuses).filter((status) => !KINDS.some(({ has }) => has(Number(status)))),
  )
  if (unknown.length > 0) throw new Error(`Unexpected statuses: ${[...new Set(unknown)].join(', ')}`)
  const plots = { ...PLOTS, alerts: { ...PLOTS.alerts, height: alerts.length * ALERT_HEIGHT } }
  const height = plots.alerts.top + plots.alerts.height + 50
  const indexes = Object.fromEntries(Object.keys(plots).map((name, index) => [name, { xAxisIndex: index, yAxisIndex: index }]))

  const bands = (withNames) => ({
    silent: true,
    itemStyle: { color: '#e9e4d8', opacity: 0.9 },
    label: { show: withNames, position: 'top', color: '#333', fontSize: 11, lineHeight: 13 },
    data: faults.map(({ name, begin, end }, index) => {
      const label = `${index + 1}\n${name.replace(', ', ',\n').replace(/^(\S+) (\S+)$/, '$1\n$2')}`
      return [{ name: label, xAxis: begin }, { xAxis: Math.max(end, begin + 1) }]
    }),
  })
  const requests = KINDS.map(({ name, color, has }, index) => ({
    type: 'line',
    name,
    ...indexes.requests,
    stack: 'requests',
    step: 'end',
    showSymbol: false,
    lineStyle: { width: 0 },
    areaStyle: { opacity: 1 },
    itemStyle: { color },
    data: [...perSecond, { ...perSecond.at(-1), second: seconds }].map(({ second, statuses }) => {
      const counts = Object.entries(statuses).filter(([status]) => has(Number(status)))
      return [second, counts.reduce((sum, [, count]) => sum + count, 0)]
    }),
    ...(index === 0 ? { markArea: bands(true) } : {}),
  }))
  const latencies = LATENCIES.map(({ name, field, color }, index) => ({
    type: 'line',
    name,
    ...indexes.latency,
    showSymbol: false,
    lineStyle: { width: 1.5 },
    itemStyle: { color },
    data: perSecond.map((each) => [each.second + 0.5, each[field]]),
    ...(index === 0 ? { markArea: bands(false) } : {}),
  }))
  const firing = {
    type: 'custom',
    ...indexes.alerts,
    data: alerts.flatMap(({ periods }, row) => periods.map(({ from, to }) => [from, Math.min(to, seconds), row])),
    renderItem: (_, { value, coord }) => {
      const [x, y] = coord([value(0), value(2)])
      const [end] = coord([value(1), value(2)])
      return { type: 'rect', shape: { x, y: y - 5, width: end - x, height: 10 }, style: { fill: '#c8553d' } }
    },
    markArea: bands(false),
  }

  const titles = { requests: 'Requests per second', latency: 'Response time in ms, logarithmic', alerts: 'Alerts that fired' }
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height })
  chart.setOption({
    animation: false,
    backgroundColor: '#fff',
    title: Object.entries(titles).map(([name, text]) => ({
      text,
      left: 8,
      top: plots[name].top - (name === 'requests' ? 92 : 32),
      textStyle: { fontSize: 13 },
    })),
    legend: [
      { data: KINDS.map(({ name }) => name), top: 0, right: 40, itemWidth: 12, itemHeight: 10, itemGap: 34, icon: 'rect' },
      {
        data: LATENCIES.map(({ name }) => name),
        top: plots.latency.top - 34,
        right: 40,
        itemWidth: 16,
        itemHeight: 3,
        itemGap: 24,
        icon: 'rect',
      },
    ],
    grid: Object.values(plots).map((plot) => ({ ...plot, left: LEFT, right: 20 })),
    xAxis: Object.keys(plots).map((name, gridIndex) => ({
      type: 'value',
      gridIndex,
      min: 0,
      max: seconds,
      interval: 10,
      splitLine: { show: false },
      axisLabel: { showMaxLabel: false },
      ...(name === 'alerts' ? { name: 'seconds since the start of the record', nameLocation: 'middle', nameGap: 28 } : {}),
    })),
    yAxis: [
      { type: 'value', gridIndex: 0 },
      { type: 'log', gridIndex: 1, min: 1, max: 10_000 },
      {
        type: 'category',
        gridIndex: 2,
        data: alerts.map(({ name }) => name),
        inverse: true,
        axisTick: { show: false },
        axisLabel: { color: '#333', fontSize: 11 },
      },
    ],
    series: [...requests, ...latencies, firing],
  })
  const svg = chart.renderToSVGString()
  // An undisposed chart keeps the process running.
  chart.dispose()
  return svg
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const result = JSON.parse(readFileSync(new URL('results/faults.json', import.meta.url), 'utf8'))
  writeFileSync(new URL('../docs/operations/faults.svg', import.meta.url), drawTimeline(result))
}
