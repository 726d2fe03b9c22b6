import { Command, Option } from 'commander'
import type { KeysCommandDeps } from './keys-command.js'
import { makeKeysCommand } from './keys-command.js'
import type { SeedCommandDeps } from './seed-command.js'
import { makeSeedCommand } from './seed-command.js'

export interface Commands extends KeysCommandDeps, SeedCommandDeps {
  /** Serves until a signal stops the process. */
  readonly serve: () => Promise<void>
  /** Returns the OpenAPI document as text. */
  readonly openApi: (format: 'json' | 'yaml') => Promise<string>
}

/** The `petstore` command. Throws `CommanderError` for wrong usage. */
export function makeProgram(commands: Commands): Command {
  const program = new Command('petstore')
    .description('The Pet Store service. Settings are environment variables: see README.md.')
    .addHelpText('afterAll', '\nExit codes: 0 done, 1 failed, 2 wrong usage or settings.')

  program.command('serve').description('serve the API until SIGTERM or SIGINT').action(commands.serve)
  program.addCommand(makeKeysCommand(commands))
  program.addCommand(makeSeedCommand(commands))
  program
    .command('openapi')
    .description('write the OpenAPI 3.1 document to standard output')
    .addOption(new Option('--format <format>', 'the output format').choices(['json', 'yaml']).default('json'))
    .action(async ({ format }: { format: 'json' | 'yaml' }) => commands.print(await commands.openApi(format)))

  const outputError = (text: string, write: (text: string) => void) => write(replaceControlCharacters(text))
  for (const command of listCommands(program)) command.showHelpAfterError().configureOutput({ outputError }).exitOverride()
  return program
}

/** Commander repeats its arguments, which must not control the terminal. */
function replaceControlCharacters(text: string): string {
  return text.replace(/(?!\n)\p{Cc}/gu, '\uFFFD')
}

/** Commands that are added with `addCommand` do not inherit the configuration of their parent. */
function listCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(listCommands)]
}
