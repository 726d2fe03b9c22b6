import { accessSync, constants } from 'node:fs'
import type { Context } from 'mocha'
import type { Browser } from 'playwright-core'
import { chromium } from 'playwright-core'
import { setUpChromium } from './engines/machine.js'
import { EngineFailed } from './engines/no-engine.js'
import { withPatience } from './engines/with-patience.js'

const DEBIANS = '/usr/bin/chromium'
const TO_RUN_THEM = "install Chromium (Debian's package chromium), or set CHROMIUM_PATH"

/** Root needs the first one; the others keep the browser itself from calling its maker. */
const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Installs Chromium where it is missing and may be installed. Throws `NoEngine` or `EngineFailed` if it cannot be had. */
export async function prepareChromium(): Promise<void> {
  if (process.env['CHROMIUM_PATH'] === undefined && !isExecutable(DEBIANS)) await setUpChromium()
}

/** Headless Chromium: the one of CHROMIUM_PATH, or Debian's. Where there is none and none can be installed, the tests are skipped. */
export async function launchChromium(context: Context): Promise<Browser> {
  const configured = process.env['CHROMIUM_PATH']
  const executablePath = configured ?? DEBIANS
  return withPatience(
    context,
    async () => {
      if (!isExecutable(executablePath)) {
        if (configured !== undefined) throw new EngineFailed(`There is no program at CHROMIUM_PATH, which is ${configured}`)
        await setUpChromium()
      }
      return chromium.launch({ executablePath, args: ARGUMENTS })
    },
    TO_RUN_THEM,
  )
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch (error) {
    if (['ENOENT', 'EACCES', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
}
