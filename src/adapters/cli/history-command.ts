import type { Command } from 'commander'
import { Option } from 'commander'
import type { KeysCommandDeps } from './api-key-admin.js'
import { formatHistory, toChangeReport } from './history-report.js'
import type { KeysOutput, OutputOptions } from './keys-output.js'
import { makeJsonOption, parseLimit, parseName, parsePastTime } from './options.js'
import { makeKeyIdArgument, readKeyId, reportUsageErrors } from './usage-errors.js'

interface HistoryOptions extends OutputOptions {
  readonly owner?: string
  readonly since?: string
  readonly until?: string
  readonly limit?: number
}

/** Adds `petstore keys history`. */
export function addHistoryCommand(keys: Command, { withApiKeyAdmin }: KeysCommandDeps, output: KeysOutput): void {
  keys
    .command('history')
    .description('list the changes of a key, of the keys of an owner, or of all keys, oldest first')
    .addArgument(makeKeyIdArgument('[key-id]'))
    .addOption(new Option('--owner <name>', 'only changes of keys of this owner').argParser(parseName))
    .addOption(new Option('--since <when>', 'only changes since 7d, 12h or 30m ago, 2026-11-22 (its start in UTC) or 2026-11-22T12:00Z'))
    .addOption(new Option('--until <when>', 'only changes before this time, in the same formats'))
    .addOption(new Option('--limit <n>', 'only the latest n changes').argParser(parseLimit))
    .addOption(makeJsonOption())
    .action(async (text: string | undefined, { owner, since, until, limit, json }: HistoryOptions, command: Command) => {
      const parseTime = (option: string, when: string) =>
        reportUsageErrors(command, () => parsePastTime(when, Date.now()), `option '${option}'`)
      const filter = {
        ...(text === undefined ? {} : { keyId: await readKeyId(command, text) }),
        ...(owner === undefined ? {} : { owner }),
        ...(since === undefined ? {} : { sinceMs: await parseTime('--since', since) }),
        ...(until === undefined ? {} : { untilMs: await parseTime('--until', until) }),
        ...(limit === undefined ? {} : { limit }),
      }
      await withApiKeyAdmin(async (admin) => {
        const reports = (await admin.history(filter)).map(toChangeReport)
        if (json) output.printJson(reports)
        else output.print(formatHistory(reports))
      })
    })
}
