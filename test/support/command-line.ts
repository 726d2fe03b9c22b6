import type { Command } from 'commander'
import { CommanderError } from 'commander'
import type { Commands } from '../../src/adapters/cli/program.js'
import { makeProgram } from '../../src/adapters/cli/program.js'

export interface Outcome {
  /** `right` if the arguments were valid and the command has run. */
  readonly usage: 'right' | 'wrong'
  readonly stdout: string
  readonly stderr: string
}

/** Runs the `petstore` command within this process. A command fails if the test does not pass its dependencies. */
export async function runProgram(args: readonly string[], commands: Partial<Commands> = {}): Promise<Outcome> {
  const out = { stdout: '', stderr: '' }
  const writeOut = (text: string) => void (out.stdout += text)
  const writeErr = (text: string) => void (out.stderr += text)
  const failUnexpectedly = () => {
    throw new Error(`petstore ${args.join(' ')} must not run`)
  }
  const program = makeProgram({
    readVersion: () => '0.0.0',
    serve: failUnexpectedly,
    renderOpenApi: failUnexpectedly,
    withApiKeyAdmin: failUnexpectedly,
    withSeed: failUnexpectedly,
    print: writeOut,
    audit: failUnexpectedly,
    systemUser: () => 'system-user',
    progressStream: process.stderr,
    ...commands,
  })
  for (const command of listCommands(program))
    command.configureOutput({ writeOut, writeErr, getOutHelpWidth: () => 80, getErrHelpWidth: () => 80 })
  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    return { usage: error.exitCode === 0 ? 'right' : 'wrong', ...out }
  }
  return { usage: 'right', ...out }
}

function listCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(listCommands)]
}
