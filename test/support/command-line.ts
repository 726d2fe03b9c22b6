import type { Command } from 'commander'
import { CommanderError } from 'commander'
import type { Commands } from '../../src/adapters/cli/program.js'
import { makeProgram } from '../../src/adapters/cli/program.js'

export interface Outcome {
  /** Whether the command line was understood, and the command carried out. */
  readonly usage: 'right' | 'wrong'
  readonly stdout: string
  readonly stderr: string
}

/** The `petstore` command within this process. What it does beyond reading its arguments has to be given; what is not fails. */
export async function runProgram(args: readonly string[], commands: Partial<Commands> = {}): Promise<Outcome> {
  const out = { stdout: '', stderr: '' }
  const writeOut = (text: string) => void (out.stdout += text)
  const writeErr = (text: string) => void (out.stderr += text)
  const notGiven = () => {
    throw new Error(`petstore ${args.join(' ')} went on to do something`)
  }
  const program = makeProgram({
    serve: notGiven,
    openApi: notGiven,
    withApiKeyAdmin: notGiven,
    withSeed: notGiven,
    print: writeOut,
    progressTo: process.stderr,
    ...commands,
  })
  for (const command of withSubcommands(program)) command.configureOutput({ writeOut, writeErr })
  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    return { usage: error.exitCode === 0 ? 'right' : 'wrong', ...out }
  }
  return { usage: 'right', ...out }
}

function withSubcommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withSubcommands)]
}
