import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** The path of a program in PATH or in /usr/sbin, which Debian omits from the PATH of users; `undefined` if it is not installed. */
export function findProgram(name: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
  return [...folders, '/usr/sbin'].map((folder) => join(folder, name)).find((file) => existsSync(file))
}
