import { cleanUpNow } from './engines/cleanup.js'

// In place of Mocha's `node-option`, for which Mocha starts a second process that does not receive SIGTERM.
process.setSourceMapsEnabled(true)

export { cleanUpNow as mochaGlobalTeardown }
