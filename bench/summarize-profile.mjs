// Says what the CPU time of a profile was spent for: node bench/summarize-profile.mjs <file.cpuprofile> [lines]
import { readFileSync } from 'node:fs'

const [file, lines = '25'] = process.argv.slice(2)
if (file === undefined) {
  console.error('Usage: node bench/summarize-profile.mjs <file.cpuprofile> [lines]')
  process.exit(2)
}
const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, 'utf8'))
const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]))
const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])))
const parts = new Map()
const functions = new Map()
let busyMicros = 0
for (const [index, id] of samples.entries()) {
  const { functionName } = frames.get(id)
  const stack = readStack(id)
  if (functionName === '(idle)' || stack.some(isModuleLoader)) continue
  const micros = timeDeltas[index]
  busyMicros += micros
  add(parts, findPart(stack), micros)
  add(functions, `${functionName === '' ? '(anonymous)' : functionName}  ${findPlace(stack)}`, micros)
}
print('time by part, without loading modules', parts)
print('self time by function', functions)

/** The frames from a function to its outermost caller. */
function readStack(id) {
  const stack = []
  for (let each = id; each !== undefined; each = parents.get(each)) stack.push(frames.get(each))
  return stack
}

function isModuleLoader({ url, functionName }) {
  if (functionName === 'compileForInternalLoader') return true
  return url.startsWith('node:internal/modules/')
}

/** The package or folder for which the time was spent: functions of Node.js count for their caller. System calls that write have their own rows. */
function findPart(stack) {
  const [{ functionName }] = stack
  if (functionName === '(garbage collector)' || functionName === '(program)') return functionName
  const owner = stack.map(({ url }) => findOwner(url)).find(Boolean) ?? 'Node.js'
  return /^write(v|Buffer|\w+String)$/.test(functionName) ? `${owner}: system calls that write` : owner
}

function findOwner(url) {
  const [, name] = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules)/.exec(url) ?? []
  const [, folder] = /\/dist\/(src(?:\/adapters)?(?:\/[^/.]+)?)\//.exec(url) ?? []
  return name ?? folder
}

/** The caller says what a function of Node.js itself, such as a system call, was for. */
function findPlace([{ url, lineNumber }, caller]) {
  if (url === '' && caller) return `called by ${caller.functionName}`
  return `${url.replace(/^.*\/(?=(dist|node_modules)\/)/, '')}:${lineNumber + 1}`
}

function add(map, name, micros) {
  map.set(name, (map.get(name) ?? 0) + micros)
}

function print(title, map) {
  console.log(`\n${title}, of ${(busyMicros / 1e6).toFixed(1)} s`)
  const sorted = [...map].toSorted(([, a], [, b]) => b - a).slice(0, Number(lines))
  for (const [name, micros] of sorted) console.log(`${((micros / busyMicros) * 100).toFixed(1).padStart(6)} %  ${name}`)
}
