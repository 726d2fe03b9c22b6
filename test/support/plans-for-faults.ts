import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Settings } from './process.js'

/** This file is not compiled: its path is relative to `dist`. */
const PLANS = fileURLToPath(new URL('../../../config/plans.json', import.meta.url))
/** Longer than any test. */
const BAN_MS = 3_600_000

/** A plans file whose bans outlast the test, and whose failure limit is not reached by the callers with an invalid key. */
export class PlansForFaults {
  readonly #folder = mkdtempSync(join(tmpdir(), 'petstore-plans-'))
  readonly settings: Settings = { PLANS_FILE: join(this.#folder, 'plans.json') }

  constructor() {
    const plans = JSON.parse(readFileSync(PLANS, 'utf8')) as { ban: object }
    const ban = { ...plans.ban, firstMs: BAN_MS }
    writeFileSync(this.settings['PLANS_FILE'] ?? '', JSON.stringify({ ...plans, ban, failedAuthenticationsPerMinute: 100_000 }))
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true })
  }
}
