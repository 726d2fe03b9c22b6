import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The scripts are not compiled: they are in the sources, next to `dist`. */
export const SCRIPTS = fileURLToPath(new URL('../../../../test/support/engines/', import.meta.url))
const REPOSITORY = 'petstore-test/'

export type Script = 'mongodb-wire-image.sh' | 'redis-image.sh'

/**
 * The name of the image that the script makes. Its tag is a hash of the script and of the other files that go into the image (their
 * paths may be relative to the scripts), so that no older image hides a change to them.
 */
export function homeMadeImage(script: string, ...ingredients: readonly string[]): string {
  const hash = createHash('sha256')
  for (const file of [script, ...ingredients]) hash.update(`${basename(file)}\0`).update(readFileSync(resolve(SCRIPTS, file)))
  return `${REPOSITORY}${basename(script, '-image.sh')}:${hash.digest('hex').slice(0, 12)}`
}

export function isHomeMade(image: string): boolean {
  return image.startsWith(REPOSITORY)
}
