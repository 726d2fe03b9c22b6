import { existsSync } from 'node:fs'
import type { Context } from 'mocha'
import type { Browser } from 'playwright-core'
import { chromium } from 'playwright-core'
import { findProgram } from './engines/find-program.js'
import { NoEngine, withEngine } from './engines/no-engine.js'

const TO_RUN_THEM = 'run scripts/set-up-engines.sh as root on Debian, or install Chromium, or set CHROMIUM_PATH'

/** Chromium needs the first option if it runs as root. The others stop requests of the browser itself. */
const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Launches headless Chromium from CHROMIUM_PATH or PATH. Skips the tests if there is no Chromium. */
export async function launchChromium(context: Context): Promise<Browser> {
  const launch = async () => {
    const { CHROMIUM_PATH: configured } = process.env
    if (configured !== undefined && !existsSync(configured)) throw new Error(`CHROMIUM_PATH is ${configured}, which does not exist`)
    const executablePath = configured ?? findProgram('chromium')
    if (executablePath === undefined) throw new NoEngine('Chromium is not installed')
    return chromium.launch({ executablePath, args: ARGUMENTS })
  }
  return withEngine(context, launch, TO_RUN_THEM)
}
