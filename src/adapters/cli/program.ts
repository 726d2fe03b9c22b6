import { Command, Option } from 'commander'
import type { KeysCommandDeps } from './keys-command.js'
import { makeKeysCommand } from './keys-command.js'
import type { SeedCommandDeps } from './seed-command.js'
import { makeSeedCommand } from './seed-command.js'

export interface Commands extends KeysCommandDeps, SeedCommandDeps {
  /** Serves until a signal stops it. */
  readonly serve: () => Promise<void>
  /** The OpenAPI document as text. */
  readonly openApi: (format: 'json' | 'yaml') => Promise<string>
}

/** The `petstore` command. Throws commander's error for wrong usage. */
export function makeProgram(commands: Commands): Command {
  const program = new Command('petstore')
    .description('The Pet Store service. Settings are environment variables; docs/operations/settings.md lists them.')
    .addHelpText('afterAll', '\nExit codes: 0 done, 1 refused or failed, 2 wrong usage or settings.')

  program.command('serve').description('serve the API until SIGTERM or SIGINT').action(commands.serve)
  program.addCommand(makeKeysCommand(commands))
  program.addCommand(makeSeedCommand(commands))
  program
    .command('openapi')
    .description('write the OpenAPI 3.1 document to standard output')
    .addOption(new Option('--format <format>', 'how to write it').choices(['json', 'yaml']).default('json'))
    .action(async ({ format }: { format: 'json' | 'yaml' }) => commands.print(await commands.openApi(format)))

  const outputError = (text: string, write: (text: string) => void) => write(withoutControls(text))
  for (const command of commandsOf(program)) command.showHelpAfterError().configureOutput({ outputError }).exitOverride()
  return program
}

/** Commander repeats what it was given: nothing of that may steer the terminal. */
function withoutControls(text: string): string {
  return text.replace(/(?!\n)\p{Cc}/gu, '\uFFFD')
}

/** Commands that were added whole do not take over what holds for their parent. */
function commandsOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(commandsOf)]
}
