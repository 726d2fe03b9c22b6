import { summarize } from './measure.mjs'
import { KOA, PETSTORE } from './servers.mjs'

const WIDTH = 860
const LABEL_WIDTH = 280
const BAR_HEIGHT = 16
const BAR_GAP = 6
const SCENE_GAP = 44
const PLOT_WIDTH = WIDTH - LABEL_WIDTH - 100
const COLORS = { ours: '#2463b4', peer: '#a9b4c2', framework: '#dfe4ea', spread: '#333333' }

/** Returns an SVG: the requests per second of each case, by scene, with lines from the minimum to the maximum. Omits scenes without a rate. */
export function drawChart(scenes) {
  const parts = []
  let y = 0
  for (const { title, cases } of scenes) {
    const bars = cases.map(({ name, rounds }) => ({ name, ...summarize(rounds.map(({ perSecond }) => perSecond)) }))
    if (bars.some(({ median }) => !Number.isFinite(median))) continue
    const scale = PLOT_WIDTH / Math.max(...bars.map(({ max }) => max))
    y += SCENE_GAP
    parts.push(text({ x: 12, y: y - 12, content: title, attributes: 'font-weight="bold"' }))
    for (const { name, median, min, max } of bars) {
      const middle = y + BAR_HEIGHT / 2
      const isBare = name === KOA
      const color = name.startsWith(PETSTORE) ? COLORS.ours : isBare ? COLORS.framework : COLORS.peer
      parts.push(
        text({
          x: LABEL_WIDTH - 8,
          y: middle + 4,
          content: isBare ? `${name}, without key check, quota and log` : name,
          attributes: 'text-anchor="end"',
        }),
      )
      parts.push(`<rect x="${LABEL_WIDTH}" y="${y}" width="${round(median * scale)}" height="${BAR_HEIGHT}" fill="${color}"/>`)
      const [from, to] = [min, max].map((value) => round(LABEL_WIDTH + value * scale))
      parts.push(`<line x1="${from}" x2="${to}" y1="${middle}" y2="${middle}" stroke="${COLORS.spread}" stroke-width="1.5"/>`)
      parts.push(text({ x: to + 6, y: middle + 4, content: Math.round(median).toLocaleString('en') }))
      y += BAR_HEIGHT + BAR_GAP
    }
  }
  const height = y + 36
  const note = text({
    x: 12,
    y: height - 12,
    content:
      'Requests per second at saturation, medians; lines are the minimum and the maximum of all rounds. Each scene has its own scale.',
  })
  const open = `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" font-family="sans-serif" font-size="12">`
  return `${open}\n<rect width="100%" height="100%" fill="white"/>\n${[...parts, note].join('\n')}\n</svg>\n`
}

function text({ x, y, content, attributes = '' }) {
  const escaped = content.replace(/&/g, '&amp;').replace(/</g, '&lt;')
  return `<text x="${x}" y="${y}" ${attributes}>${escaped}</text>`
}

function round(value) {
  return Math.round(value * 10) / 10
}
