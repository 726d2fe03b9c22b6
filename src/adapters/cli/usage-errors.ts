import type { Command } from 'commander'
import { Argument, InvalidArgumentError } from 'commander'
import { LimitsRequired } from '../../core/errors.js'
import { parseKeyId } from './options.js'

export const makeKeyIdArgument = (name = '<key-id>') => new Argument(name, 'the public name of a key (key_…), as printed by list')

export function readKeyId(command: Command, text: string): Promise<string> {
  return reportUsageErrors(command, () => parseKeyId(text), "argument 'key-id'")
}

/** Reports values that the commands or a use case reject in the same way as values that commander rejects. */
export async function reportUsageErrors<Value>(command: Command, run: () => Value | Promise<Value>, place = ''): Promise<Value> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof InvalidArgumentError) return command.error(`error: ${place ? `${place}: ` : ''}${error.message}`)
    if (error instanceof LimitsRequired) return command.error(`error: ${error.message}: use --minute and --day`)
    throw error
  }
}
