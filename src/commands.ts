import { userInfo } from 'node:os'
import type { Commands } from './adapters/cli/program.js'
import type { Config } from './config.js'
import { readProcessConfig } from './config.js'
import { SettingError } from './core/errors.js'
import { readVersion } from './version.js'
import type { CommandParts } from './wiring/parts.js'

/** If `PORT` is 0, `petstore openapi` uses this port in the server URL of the document. */
const OPENAPI_PORT = 8080

/** Implements the commands. Each command validates the settings first and then loads only the modules that it needs. */
export const COMMANDS: Commands = {
  async serve() {
    const config = readProcessConfig()
    const { serve } = await import('./service.js')
    await serve(config)
  },

  readVersion,

  async renderOpenApi(format) {
    const { publicUrl, host, port, plans } = readProcessConfig('command')
    const { renderOpenApiDocument } = await import('./adapters/http/openapi/openapi.js')
    const { toServerUrl } = await import('./adapters/http/server/server-url.js')
    return renderOpenApiDocument({ serverUrl: publicUrl ?? toServerUrl(host, port || OPENAPI_PORT), plans, version: readVersion() }, format)
  },

  withApiKeyAdmin: (work) => withParts('keys', ({ apiKeyAdmin }) => work(apiKeyAdmin)),
  withSeed: (work) => withParts('seed', ({ seed }) => work(seed)),

  print: (text) => process.stdout.write(text),
  audit: (change) => process.stderr.write(`${JSON.stringify({ level: 30, time: Date.now(), ...change })}\n`),
  systemUser() {
    try {
      return userInfo().username
    } catch {
      // A container may run with a user ID that has no name.
      return `user ID ${process.getuid?.()}`
    }
  },
  progressStream: process.stderr,
}

/** Connects to the shared storage for `work`, and closes the connections when `work` ends. */
async function withParts(command: string, work: (parts: CommandParts) => Promise<void>): Promise<void> {
  const config = readDistributedConfig(command)
  const { makeContainer } = await import('./wiring/container.js')
  const { CommandParts: Parts } = await import('./wiring/parts.js')
  // Silent, because `main.ts` prints the error of a command as one sentence.
  const container = await makeContainer({ ...config, logLevel: 'silent' })
  const parts = container.get(Parts)
  try {
    await Promise.all(parts.backingServices.map((service) => service.prepare('command')))
    await work(parts)
  } finally {
    await Promise.all(parts.backingServices.map((service) => service.close()))
  }
}

/** Throws `SettingError` in embedded mode: a command has no access to the data of another process. */
function readDistributedConfig(command: string): Config {
  const config = readProcessConfig('command')
  if (config.distributed) return config
  throw new SettingError(
    `petstore ${command} requires shared storage: set MONGODB_URL and REDIS_URL. Without them, all data lives in one process, and petstore serve prints demo keys.`,
  )
}
