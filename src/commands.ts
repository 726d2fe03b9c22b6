import type { Commands } from './adapters/cli/program.js'
import type { Config } from './config.js'
import { readProcessConfig } from './config.js'
import { SettingError } from './core/errors.js'
import type { CommandParts } from './wiring/parts.js'

/** The port in the document of `petstore openapi` if `PORT` is 0. */
const OPENAPI_PORT = 8080

/** What the commands do. Each checks the settings first, and then loads only the modules that it needs. */
export const COMMANDS: Commands = {
  async serve() {
    const config = readProcessConfig()
    const { serve } = await import('./service.js')
    await serve(config)
  },

  async openApi(format) {
    const { publicUrl, host, port, plans } = readProcessConfig('command')
    const { openApiText } = await import('./adapters/http/openapi/openapi.js')
    const { toServerUrl } = await import('./adapters/http/server/server-url.js')
    return openApiText({ serverUrl: publicUrl ?? toServerUrl(host, port || OPENAPI_PORT), plans }, format)
  },

  withApiKeyAdmin: (work) => withParts('keys', ({ apiKeyAdmin }) => work(apiKeyAdmin)),
  withSeed: (work) => withParts('seed', ({ seed }) => work(seed)),

  print: (text) => process.stdout.write(text),
  progressTo: process.stderr,
}

/** Connects to the shared storage for `work`, and closes the connections when `work` ends. */
async function withParts(command: string, work: (parts: CommandParts) => Promise<void>): Promise<void> {
  const config = readSharedConfig(command)
  const { makeContainer } = await import('./wiring/container.js')
  const { CommandParts: Parts } = await import('./wiring/parts.js')
  // A command prints its errors as one sentence, at the end.
  const parts = makeContainer({ ...config, logLevel: 'silent' }).get(Parts)
  try {
    await Promise.all(parts.backingServices.map((service) => service.prepare()))
    await work(parts)
  } finally {
    await Promise.all(parts.backingServices.map((service) => service.close()))
  }
}

/** Throws `SettingError` in embedded mode: a command has no access to the data of another process. */
function readSharedConfig(command: string): Config {
  const config = readProcessConfig('command')
  if (config.distributed) return config
  throw new SettingError(
    `petstore ${command} works with the data that replicas share: set MONGODB_URL and REDIS_URL. Without them, each process has its own data, and npm start prints demo keys.`,
  )
}
