// Lists the functions and packages with the most self time in a CPU profile: node bench/summarize-profile.mjs <file.cpuprofile> [lines]
import { readFileSync } from 'node:fs'

const [file, lines = '25'] = process.argv.slice(2)
const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, 'utf8'))
const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]))
const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])))
const byFunction = new Map()
const byPackage = new Map()
let busyMicros = 0
for (const [index, id] of samples.entries()) {
  const { functionName, url, lineNumber } = frames.get(id)
  if (functionName === '(idle)') continue
  const micros = timeDeltas[index]
  busyMicros += micros
  const owner = findOwner(url, functionName)
  add(byPackage, owner, micros)
  // The caller says what a function of Node.js itself, such as a system call, was for.
  const place =
    url === '' && parents.has(id) ? `called by ${frames.get(parents.get(id)).functionName}` : `${shorten(url)}:${lineNumber + 1}`
  add(byFunction, `${functionName === '' ? '(anonymous)' : functionName}  ${place}`, micros)
}
print('self time by package', byPackage)
print('self time by function', byFunction)

function shorten(url) {
  return url.replace(/^.*\/(?=(dist|node_modules)\/)/, '')
}

function findOwner(url, functionName) {
  const [, name] = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules)/.exec(url) ?? []
  if (name) return name
  if (url.startsWith('node:')) return url.split('/')[0]
  return url === '' ? (functionName.startsWith('(') ? functionName : 'native code') : 'Pet Store'
}

function add(map, name, micros) {
  map.set(name, (map.get(name) ?? 0) + micros)
}

function print(title, map) {
  console.log(`\n${title}, of ${(busyMicros / 1e6).toFixed(1)} s`)
  const sorted = [...map].toSorted(([, a], [, b]) => b - a).slice(0, Number(lines))
  for (const [name, micros] of sorted) console.log(`${((micros / busyMicros) * 100).toFixed(1).padStart(6)} %  ${name}`)
}
