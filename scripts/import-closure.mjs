import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path/posix'

/** Returns these files and all files that they import, directly or indirectly. Includes type imports, because a reader follows them too. */
export function listImportClosure(entries) {
  const files = new Set()
  const visit = (file) => {
    if (files.has(file)) return
    files.add(file)
    const imports = readFileSync(file, 'utf8').matchAll(/^(?:import|export)\b[^'"]*?\bfrom '(\.[^']+)\.js'/gms)
    for (const [, specifier] of imports) visit(join(dirname(file), `${specifier}.ts`))
  }
  entries.forEach(visit)
  return [...files].toSorted((a, b) => (a < b ? -1 : 1))
}

/** Returns the total number of lines in the files. */
export function countLines(files) {
  return files.reduce((sum, file) => sum + readFileSync(file, 'utf8').trimEnd().split('\n').length, 0)
}
