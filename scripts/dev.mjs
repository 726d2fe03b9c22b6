// Runs the service for development: compiles on every change, restarts the service, and lets a debugger connect (--inspect).
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const TSC = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url))
const SERVICE = ['--watch', '--watch-preserve-output', '--inspect', '--enable-source-maps', 'dist/src/main.js', 'serve']

const children = new Set()

// The compiler misses changes that happen before it watches the files, so the service starts after that.
const compiler = start([TSC, '--watch', '--preserveWatchOutput'], ['ignore', 'pipe', 'inherit'])
compiler.stdout.on('data', (output) => {
  process.stdout.write(output)
  if (children.size === 1 && output.includes('Watching for file changes')) start(SERVICE, ['ignore', 'inherit', 'inherit'])
})

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, stop)

/** Each child leads a process group, because both start processes of their own. If one child exits, the other one is stopped. */
function start(args, stdio) {
  const child = spawn(process.execPath, args, { stdio, detached: true })
  children.add(child)
  child.once('exit', () => {
    children.delete(child)
    stop()
  })
  return child
}

function stop() {
  compiler.stdout.removeAllListeners('data')
  for (const child of children) process.kill(-child.pid, 'SIGTERM')
}
