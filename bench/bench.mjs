// Compares the service with its peers: npm run bench -- --help
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { drawChart } from './chart.mjs'
import { Databases } from './databases.mjs'
import { cleanUpNow } from '../dist/test/support/engines/cleanup.js'
import { formatGoals, formatMachine, formatScene } from './report.mjs'
import { MIN_PETS, SCENES } from './scenes.mjs'
import { startLoadGenerator } from './servers.mjs'

const DECISIONS = 'decisions'
const RESULTS = fileURLToPath(new URL('results', import.meta.url))
const USAGE = `Usage: npm run bench -- [options]

  --scene <name>       measures only this scene; may be repeated
  --rounds <n>         number of rounds (default: 5)
  --seconds <n>        duration of each measurement; a round has two per server (default: 3)
  --warm-up <n>        seconds of load on each server before the first round: once to compile the code, once to find the fixed rate (default: 3)
  --connections <n>    connections at saturation (default: 64)
  --pets <n>           number of pets in the scene deep-page (default: 1000000; at least ${MIN_PETS})
  --profile <folder>   writes CPU profiles of the service to this folder, for summarize-profile.mjs
  --check              only checks that the bench finds what it uses of the service

Scenes: ${[...SCENES.map(({ name }) => name), DECISIONS].join(', ')}
`

const flags = parseFlags()
if (flags.check) process.exit(spawnSync(process.execPath, [toPath('decisions.mjs'), '--check'], { stdio: 'inherit' }).status)
if (!existsSync('/proc/self/stat')) fail('The bench needs Linux, because it reads the CPU time of processes from /proc')
if (!existsSync(toPath('node_modules'))) fail('The peers are not installed: use npm run bench')

const names = flags.scene ?? [...SCENES.map(({ name }) => name), DECISIONS]
const nodeArgs = flags.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(flags.profile)}`]
const options = {
  rounds: toNumber('rounds'),
  seconds: toNumber('seconds'),
  warmUpSeconds: toNumber('warm-up'),
  connections: toNumber('connections'),
  pets: toNumber('pets', MIN_PETS),
}
const databases = new Databases()
const generator = startLoadGenerator()
let isInterrupted = false
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => (isInterrupted = true))
try {
  await run()
} catch (error) {
  // The servers have been stopped. The process exits when everything else has been removed: see cleanup.ts.
  if (isInterrupted) await new Promise(() => {})
  throw error
} finally {
  generator.stop()
  await databases.close()
  await cleanUpNow()
}
if (names.includes(DECISIONS)) spawnSync(process.execPath, [toPath('decisions.mjs'), `${options.rounds}`], { stdio: 'inherit' })

async function run() {
  const scenes = []
  for (const scene of SCENES.filter(({ name }) => names.includes(name))) {
    const { name, title } = scene
    const log = (text) => process.stderr.write(`${name}: ${text}\n`)
    await databases.flushRedis()
    scenes.push({ name, title, ...(await scene.run({ databases, generator, options: { ...options, nodeArgs }, log })) })
    console.log(formatScene(scenes.at(-1)))
  }
  if (scenes.length > 0) await report(scenes)
}

async function report(scenes) {
  const commit = execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8', cwd: RESULTS }).trim()
  const machine = { cpus: cpus().length, cpuModel: cpus()[0].model, node: process.version, ...(await databases.versions()) }
  const results = { date: new Date().toISOString(), commit, machine, options, scenes }
  mkdirSync(RESULTS, { recursive: true })
  writeFileSync(`${RESULTS}/latest.json`, `${JSON.stringify(results, undefined, 1)}\n`)
  writeFileSync(`${RESULTS}/latest.svg`, drawChart(scenes))
  console.log(formatGoals(scenes))
  console.log(formatMachine(results))
  console.log(`Written to ${RESULTS}: latest.json and latest.svg`)
}

function parseFlags() {
  const text = (value) => ({ type: 'string', ...(value === undefined ? {} : { default: value }) })
  const known = {
    scene: { ...text(), multiple: true },
    rounds: text('5'),
    seconds: text('3'),
    'warm-up': text('3'),
    connections: text('64'),
    pets: text('1000000'),
    profile: text(),
    check: { type: 'boolean' },
    help: { type: 'boolean' },
  }
  let values
  try {
    values = parseArgs({ options: known }).values
  } catch (error) {
    fail(`${error.message}\n\n${USAGE}`)
  }
  if (values.help) {
    console.log(USAGE)
    process.exit()
  }
  const unknown = values.scene?.find((name) => name !== DECISIONS && !SCENES.some((scene) => scene.name === name))
  if (unknown !== undefined) fail(`There is no scene ${unknown}\n\n${USAGE}`)
  return values
}

function toNumber(flag, min = 1) {
  const number = Number(flags[flag])
  if (!(number >= min)) fail(`--${flag} must be a number, and at least ${min}`)
  return number
}

function toPath(relative) {
  return fileURLToPath(new URL(relative, import.meta.url))
}

function fail(message) {
  console.error(message)
  process.exit(2)
}
