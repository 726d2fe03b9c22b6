import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { getSetting, SETTING_NAMES, SETTINGS } from '../../src/settings.js'

/** If the reader of the log is slow, the process needs this much longer to exit. */
const LOG_MS = 2_000

describe('the systemd unit', () => {
  const unit = readFileSync('config/systemd/petstore.service', 'utf8')
  const findAll = (pattern: RegExp) => [...unit.matchAll(pattern)].map(([, match = '']) => match)

  it('gives the service enough time to stop', () => {
    const [seconds] = findAll(/^TimeoutStopSec=(\d+)$/gm)
    expect(Number(seconds) * 1000).to.be.at.least(Number(SETTINGS.SHUTDOWN_TIMEOUT_MS.default) + LOG_MS)
  })

  it('sets only settings that exist', () => {
    const known = SETTING_NAMES.flatMap((name) => (getSetting(name).isSecret ? [name, `${name}_FILE`] : [name]))
    expect(known).to.include.members(findAll(/^Environment=(?!NODE_ENV=production$)(\w+)=/gm))
  })

  it('loads all secrets, and passes them as files', () => {
    const files = findAll(/^Environment=\w+_FILE=%d\/(.+)$/gm)
    expect(files).to.have.lengthOf(SETTING_NAMES.filter((name) => getSetting(name).isSecret).length)
    expect(findAll(/^LoadCredential=([\w-]+):\/etc\/petstore\/[\w-]+$/gm)).to.have.members(files)
  })
})
