import { Command, Option } from 'commander'

export interface Commands {
  /** Serves until a signal stops it. */
  readonly serve: () => Promise<void>
  /** The OpenAPI document as text. */
  readonly openApi: (format: 'json' | 'yaml') => string
  readonly print: (text: string) => void
}

/** The `petstore` command. Exit code 2 for wrong usage. */
export function makeProgram({ serve, openApi, print }: Commands): Command {
  const program = new Command('petstore')
    .description('The Pet Store service. Settings are environment variables; README.md lists them.')
    .showHelpAfterError()
    .exitOverride()

  program.command('serve').description('serve the API until SIGTERM or SIGINT').action(serve)

  program
    .command('openapi')
    .description('write the OpenAPI 3.1 document to standard output')
    .addOption(new Option('--format <format>', 'how to write it').choices(['json', 'yaml']).default('json'))
    .action(({ format }: { format: 'json' | 'yaml' }) => print(openApi(format)))

  return program
}
