import { accessSync, constants } from 'node:fs'
import type { Context } from 'mocha'
import type { Browser } from 'playwright-core'
import { chromium } from 'playwright-core'
import { skipFor } from './skip.js'

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

/** Headless Chromium: the one of CHROMIUM_PATH, or Debian's. Without one the test is left out. */
export async function launchChromium(context: Context): Promise<Browser> {
  const executablePath = process.env['CHROMIUM_PATH'] ?? '/usr/bin/chromium'
  if (!isExecutable(executablePath)) {
    skipFor(context, `there is no Chromium at ${executablePath}: install Debian's package chromium, or set CHROMIUM_PATH`)
  }
  return chromium.launch({ executablePath, args: ARGUMENTS })
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
