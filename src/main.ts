#!/usr/bin/env node
import { CommanderError } from 'commander'
import { makeProgram } from './adapters/cli/program.js'
import type { Config } from './config.js'
import { ConfigError, readProcessConfig } from './config.js'
import { DomainError, OperatorError, SettingError } from './core/errors.js'
import { EXIT, toSentence } from './exit.js'

/** The port in the document of `petstore openapi` if `PORT` is 0. */
const OPENAPI_PORT = 8080

/** Printed as one sentence, without a stack trace. */
function isForOperators(error: unknown): error is Error {
  return error instanceof ConfigError || error instanceof OperatorError || error instanceof DomainError
}

/** Throws `SettingError` without the shared storage: a command has no access to the data of another process. */
function readSharedConfig(command: string): Config {
  const config = readProcessConfig('command')
  if (config.distributed) return config
  throw new SettingError(
    `petstore ${command} requires shared storage: set MONGODB_URL and REDIS_URL. Without them, all data lives in one process; petstore serve then prints demo keys.`,
  )
}

/** Runs the command and loads only what it needs, after the settings are checked. Resolves to the exit code. */
async function run(): Promise<number> {
  const openApi = async (format: 'json' | 'yaml') => {
    const { publicUrl, host, port, plans } = readProcessConfig('command')
    const [{ openApiText }, { toServerUrl }] = await Promise.all([
      import('./adapters/http/openapi/openapi.js'),
      import('./adapters/http/server/server-url.js'),
    ])
    return openApiText({ serverUrl: publicUrl ?? toServerUrl(host, port || OPENAPI_PORT), plans }, format)
  }
  const print = (text: string) => process.stdout.write(text)
  const program = makeProgram({
    async serve() {
      const config = readProcessConfig()
      await (await import('./service.js')).serve(config)
    },
    openApi,
    async withApiKeyAdmin(work) {
      const config = readSharedConfig('keys')
      await (await import('./commands.js')).withApiKeyAdmin(config, work)
    },
    async withSeed(work) {
      const config = readSharedConfig('seed')
      await (await import('./commands.js')).withSeed(config, work)
    },
    print,
    progressTo: process.stderr,
  })
  try {
    await program.parseAsync()
    return EXIT.done
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage
    if (isForOperators(error)) process.stderr.write(`${toSentence(error)}\n`)
    else process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
    return error instanceof ConfigError || error instanceof SettingError ? EXIT.usage : EXIT.failed
  }
}

// The reader of the output may close it early (`petstore openapi | head`).
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})
process.exitCode = await run()
if (process.exitCode !== EXIT.done) process.exit()
