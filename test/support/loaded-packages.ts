import type { ServiceProcess } from './process.js'

/** Prints the paths of all loaded CommonJS modules. */
const LIST_MODULES_SCRIPT = [
  "import { createRequire } from 'node:module'",
  "const { cache } = createRequire('file:///')",
  "process.on('SIGUSR2', () => console.error(Object.keys(cache).join('\\n')))",
].join('\n')

/** An option of Node.js. A process with it can be passed to `stopAndListLoadedPackages`. */
export const LIST_MODULES_ON_SIGUSR2 = `--import=data:text/javascript,${encodeURIComponent(LIST_MODULES_SCRIPT)}`

/** Returns the names of the packages from which CommonJS modules were loaded. */
export async function stopAndListLoadedPackages(service: ServiceProcess): Promise<Set<string | undefined>> {
  service.signal('SIGUSR2')
  await service.stop()
  const { stderr } = await service.ended
  return new Set([...stderr.matchAll(/.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/g)].map(([, name]) => name))
}
