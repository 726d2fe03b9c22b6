import type { Command } from 'commander'
import { Option } from 'commander'
import { RotationUnconfirmed } from '../../core/use-cases/rotate-api-key.js'
import type { KeysCommandDeps } from './api-key-admin.js'
import type { KeysOutput, OutputOptions } from './keys-output.js'
import { makeByOption, makeJsonOption, parseGrace } from './options.js'
import { makeKeyIdArgument, readKeyId } from './usage-errors.js'

const DEFAULT_GRACE = '24h'

/** Adds `petstore keys rotate`. */
export function addRotateCommand(keys: Command, { withApiKeyAdmin, systemUser }: KeysCommandDeps, output: KeysOutput): void {
  keys
    .command('rotate')
    .description('give a key a new secret and print it; the old secret stays valid for the grace period')
    .addArgument(makeKeyIdArgument())
    .addOption(
      new Option('--grace <duration>', 'how long the old secret stays valid: 24h, 30m, 7d, or 0 to invalidate it now')
        .argParser(parseGrace)
        .default(parseGrace(DEFAULT_GRACE), DEFAULT_GRACE),
    )
    .addOption(new Option('--finish', 'invalidate the old secret of an earlier rotation now, instead of rotating').conflicts('grace'))
    .addOption(makeByOption())
    .addOption(makeJsonOption())
    .action(async (text: string, options: { grace: number; finish?: true; by?: string } & OutputOptions, command: Command) => {
      const keyId = await readKeyId(command, text)
      const { grace: graceMs, finish, by = systemUser() } = options
      await withApiKeyAdmin(async (admin) => {
        if (finish) {
          const finished = await admin.finishRotation(keyId, by)
          output.reportChange('rotation of API key finished', finished, 'No rotation of the key is in progress.', admin, options)
          return
        }
        const rotated = await admin.rotate(keyId, { graceMs }, by).catch((error: unknown) => {
          if (error instanceof RotationUnconfirmed) printUnconfirmed(error.secret, keyId, output, options)
          throw error
        })
        output.audit('API key rotated', rotated.key, by, rotated.change)
        output.printChange(rotated, admin, options)
      })
    })
}

/** The secret must not be lost: if the key was rotated, clients need it before the grace period ends. */
function printUnconfirmed(secret: string, keyId: string, output: KeysOutput, { json }: OutputOptions): void {
  if (json) output.printJson({ key: secret, keyId, isConfirmed: false })
  else output.print(`The API key's new secret, if the key was rotated. It is shown only once and is not stored:\n\n  ${secret}\n\n`)
}
