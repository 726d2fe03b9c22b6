import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Where daemons and the tools of root live; not in everybody's PATH. */
const SYSTEM_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin']

export function searchPath(): string {
  return [process.env['PATH'] ?? '', ...SYSTEM_FOLDERS].join(delimiter)
}

/** Its path, if this machine has it. */
export function findProgram(name: string): string | undefined {
  return searchPath()
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, name))
    .find(isExecutable)
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch (error) {
    if (['ENOENT', 'EACCES', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
}
