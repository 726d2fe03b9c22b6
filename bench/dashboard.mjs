// Draws config/grafana/dashboard.json without Grafana: runs the query of each panel and draws the panels where the dashboard puts them.
import { readFileSync } from 'node:fs'
import { init } from 'echarts'

const WIDTH = 1200
const COLUMNS = 24
/** The height of a row of the grid, and the space between panels. */
const ROW_HEIGHT = 30
const GAP = 8
const STEP_SECONDS = 2
/** What Grafana uses if Prometheus scrapes every second. */
const VARIABLES = { $__rate_interval: '4s', $job: 'petstore' }
const FORMATS = {
  short: (value) => `${round(value)}`,
  reqps: (value) => `${round(value)} req/s`,
  s: (value) => (value < 1 ? `${round(value * 1000)} ms` : `${round(value)} s`),
  bytes: (value) => `${Math.round(value / 2 ** 20)} MiB`,
}
const COLORS = ['#56a64b', '#e0a800', '#3274d9', '#e0752d', '#c4162a', '#8f3bb8', '#37872d', '#705da0', '#1f78c1', '#8a6d3b']

/** Returns an SVG and the titles of the panels without data. */
export async function drawDashboard(prometheus, { startSeconds, endSeconds }) {
  const { title, panels } = JSON.parse(readFileSync(new URL('../config/grafana/dashboard.json', import.meta.url), 'utf8'))
  const range = { startSeconds, endSeconds, stepSeconds: STEP_SECONDS }
  const drawn = []
  const emptyPanels = []
  for (const panel of panels) {
    const { x, y, w, h } = panel.gridPos
    const column = (WIDTH - GAP) / COLUMNS
    const place = {
      x: GAP + x * column,
      y: 40 + y * (ROW_HEIGHT + GAP),
      width: w * column - GAP,
      height: h * (ROW_HEIGHT + GAP) - GAP,
    }
    if (panel.type === 'row') {
      drawn.push(text(place.x, place.y + 21, panel.title, 'font-size="15" font-weight="bold"'))
      continue
    }
    const series = await querySeries(prometheus, panel, range)
    if (!series.some(({ values }) => [...values.values()].some(Number.isFinite))) emptyPanels.push(panel.title)
    drawn.push(placeAt(place, drawPanel(panel, series, place, range)))
  }
  const height = 40 + Math.max(...panels.map(({ gridPos: { y, h } }) => y + h)) * (ROW_HEIGHT + GAP) + GAP
  const open = `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif">`
  const background = '<rect width="100%" height="100%" fill="#f4f5f5"/>'
  const svg = [open, background, text(GAP, 26, title, 'font-size="18"'), ...drawn, '</svg>\n'].join('\n')
  return { svg, emptyPanels }
}

async function querySeries(prometheus, { title, targets }, range) {
  const toIndex = (time) => Math.round((time - range.startSeconds) / STEP_SECONDS)
  const results = await Promise.all(
    targets.map(async ({ expr, legendFormat }) => {
      const query = expr.replace(/\$\w+/g, (variable) => VARIABLES[variable])
      const series = await prometheus.queryRange(query, range)
      if (series.length === 0) console.error(`Dashboard: "${title}" has no data for ${legendFormat}: ${query}`)
      return series.map(({ metric, values }) => ({
        name: legendFormat.replace(/\{\{(\w+)\}\}/g, (_, label) => metric[label] ?? '').trim(),
        values: new Map(values.map(([time, value]) => [toIndex(time), Number(value)])),
      }))
    }),
  )
  return results.flat()
}

function drawPanel({ title, description = '', fieldConfig }, series, { width, height }, { startSeconds, endSeconds }) {
  const { unit, min, custom } = fieldConfig.defaults
  const times = Array.from(
    { length: Math.floor((endSeconds - startSeconds) / STEP_SECONDS) + 1 },
    (_, index) => startSeconds + index * STEP_SECONDS,
  )
  const descriptionLines = countLines([description], width)
  const legendLines = countLines(
    series.map(({ name }) => `${name}      `),
    width,
  )
  const small = { fontSize: 10 }
  const chart = init(null, null, { renderer: 'svg', ssr: true, width, height })
  chart.setOption({
    animation: false,
    backgroundColor: '#fff',
    color: COLORS,
    title: {
      text: title,
      subtext: description,
      left: 10,
      top: 6,
      itemGap: 3,
      textStyle: { fontSize: 13 },
      subtextStyle: { ...small, width: width - 30, overflow: 'break' },
    },
    legend: { bottom: 6, left: 10, right: 10, itemWidth: 12, itemHeight: 3, icon: 'rect', itemGap: 18, textStyle: small },
    grid: { left: 62, right: 16, top: 34 + 14 * descriptionLines, bottom: 18 + 28 * legendLines },
    xAxis: {
      type: 'time',
      min: startSeconds * 1000,
      max: endSeconds * 1000,
      splitNumber: Math.round(width / 130),
      axisLabel: { ...small, formatter: (ms) => new Date(ms).toISOString().slice(11, 19), hideOverlap: true },
    },
    yAxis: { type: 'value', min, axisLabel: { ...small, formatter: FORMATS[unit] }, splitNumber: 4 },
    series: series.map(({ name, values }) => ({
      type: 'line',
      name,
      showSymbol: false,
      lineStyle: { width: 1.2 },
      ...(custom.fillOpacity > 0 ? { areaStyle: { opacity: custom.fillOpacity / 100 } } : {}),
      ...(custom.stacking.mode === 'normal' ? { stack: 'all' } : {}),
      data: times.map((time, index) => [Math.round(time * 1000), Number.isFinite(values.get(index)) ? values.get(index) : null]),
    })),
  })
  const svg = chart.renderToSVGString()
  // An undisposed chart keeps the process running.
  chart.dispose()
  return svg
}

/** An estimate: without a browser, nothing measures text. */
function countLines(texts, width) {
  const characters = texts.reduce((sum, { length }) => sum + length, 0)
  return Math.ceil((characters * 5.6) / (width - 30))
}

function placeAt({ x, y }, svg) {
  return svg.replace('<svg ', `<svg x="${round(x)}" y="${y}" `)
}

function text(x, y, content, attributes) {
  return `<text x="${round(x)}" y="${y}" ${attributes}>${content}</text>`
}

function round(value) {
  return Math.round(value * 100) / 100
}
