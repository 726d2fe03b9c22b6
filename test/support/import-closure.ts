import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path/posix'

/** Returns the given files and all files that they import, directly or indirectly. Type imports count: a reader follows them too. */
export function findImportClosure(entries: readonly string[]): string[] {
  const files = new Set<string>()
  const visit = (file: string) => {
    if (files.has(file)) return
    files.add(file)
    const imports = readFileSync(file, 'utf8').matchAll(/^(?:import|export)\b[^'"]*?\bfrom '(\.[^']+)\.js'/gms)
    for (const [, specifier] of imports) visit(join(dirname(file), `${specifier}.ts`))
  }
  entries.forEach(visit)
  return [...files].toSorted((a, b) => (a < b ? -1 : 1))
}

export function countLines(files: readonly string[]): number {
  return files.reduce((sum, file) => sum + readFileSync(file, 'utf8').trimEnd().split('\n').length, 0)
}
