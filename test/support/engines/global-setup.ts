import { prepareChromium } from '../chromium.js'
import { prepareMongo } from './mongo-engine.js'

let prepared: Promise<void> | undefined

/**
 * Starts to set up what takes longest while the suites that need neither MongoDB nor a browser run; `.mocharc.json` puts those first. If
 * this fails, the suites that need it say so.
 */
export function mochaGlobalSetup(): void {
  prepared = prepareMongo()
    .catch(() => undefined)
    .then(prepareChromium)
    .catch(() => undefined)
}

/** A run of few tests ends when nothing is being set up any more. */
export async function mochaGlobalTeardown(): Promise<void> {
  await prepared
}
