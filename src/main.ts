#!/usr/bin/env node
import { CommanderError } from 'commander'
import { makeProgram } from './adapters/cli/program.js'
import { COMMANDS } from './commands.js'
import { ConfigError } from './config.js'
import { DomainError, OperatorError, SettingError } from './core/errors.js'
import { EXIT_CODES, toOperatorMessage } from './exit.js'

/** Runs the command and resolves to the exit code. */
async function run(): Promise<number> {
  try {
    await makeProgram(COMMANDS).parseAsync()
    return EXIT_CODES.success
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_CODES.success : EXIT_CODES.usage
    process.stderr.write(`${toText(error)}\n`)
    return error instanceof ConfigError || error instanceof SettingError ? EXIT_CODES.usage : EXIT_CODES.failure
  }
}

/** Returns one sentence for an error that an operator can act on, and the stack trace for any other error. */
function toText(error: unknown): string {
  const isForOperators = error instanceof ConfigError || error instanceof OperatorError || error instanceof DomainError
  if (isForOperators) return toOperatorMessage(error)
  return error instanceof Error ? `${error.stack}` : String(error)
}

// The program that reads the output may close the pipe early (`petstore openapi | head`).
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})
process.exitCode = await run()
if (process.exitCode !== EXIT_CODES.success) process.exit()
