import { Command, Option } from 'commander'
import type { KeysCommandDeps } from './api-key-admin.js'
import { makeKeysCommand } from './keys-command.js'
import type { SeedCommandDeps } from './seed-command.js'
import { makeSeedCommand } from './seed-command.js'

export interface Commands extends KeysCommandDeps, SeedCommandDeps {
  /** Returns the version of the package. */
  readonly readVersion: () => string
  /** Serves until a signal stops it. */
  readonly serve: () => Promise<void>
  /** Returns the OpenAPI document as text. */
  readonly renderOpenApi: (format: 'json' | 'yaml') => Promise<string>
}

/** The `petstore` command. Throws commander's error for invalid usage. */
export function makeProgram(commands: Commands): Command {
  const program = new Command('petstore')
    .description('The Pet Store service. Settings are environment variables; docs/operations/settings.md describes them.')
    .version(commands.readVersion(), '-V, --version', 'display the version')
    .addHelpText('afterAll', '\nExit codes: 0 success, 1 failure, 2 invalid usage or settings.')

  program.command('serve').description('serve the API until SIGTERM or SIGINT').action(commands.serve)
  program.addCommand(makeKeysCommand(commands))
  program.addCommand(makeSeedCommand(commands))
  program
    .command('openapi')
    .description('write the OpenAPI 3.1 document to standard output')
    .addOption(new Option('--format <format>', 'the format of the document').choices(['json', 'yaml']).default('json'))
    .action(async ({ format }: { format: 'json' | 'yaml' }) => commands.print(await commands.renderOpenApi(format)))

  const outputError = (text: string, write: (text: string) => void) => write(replaceControlCharacters(text))
  for (const command of listCommands(program))
    command
      .showHelpAfterError(`(see ${toFullName(command)} --help)`)
      .configureOutput({ outputError })
      .exitOverride()
  return program
}

/** Commander's error messages repeat arguments, which must not be able to control the terminal. */
function replaceControlCharacters(text: string): string {
  return text.replace(/(?!\n)\p{Cc}/gu, '\uFFFD')
}

/** For example `petstore keys issue`. */
function toFullName(command: Command): string {
  return command.parent ? `${toFullName(command.parent)} ${command.name()}` : command.name()
}

/** Lists the command and all its subcommands. Commands that are added with `addCommand` do not inherit the settings of their parent. */
function listCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(listCommands)]
}
