import { Argument, Command, Option } from 'commander'
import type { ApiKeyState, StoredApiKey } from '../../core/api-key.js'
import { API_KEY_STATES } from '../../core/api-key.js'
import type { PlanName, Plans } from '../../core/plan.js'
import { PLAN_NAMES } from '../../core/plan.js'
import type { ChangeApiKeyPlan } from '../../core/use-cases/change-api-key-plan.js'
import type { IssueApiKey } from '../../core/use-cases/issue-api-key.js'
import type { ListApiKeys } from '../../core/use-cases/list-api-keys.js'
import type { RevokeApiKey } from '../../core/use-cases/revoke-api-key.js'
import type { ShowApiKey } from '../../core/use-cases/show-api-key.js'
import type { KeyReport } from './key-report.js'
import { keyLines, keyTable, reportOf } from './key-report.js'
import { dayOption, expiryOf, jsonOption, keyIdOf, minuteOption, ownerOf, ownLimits, planOption } from './options.js'

/** What an operator can do with API keys. */
export interface KeyDesk {
  readonly issue: IssueApiKey
  readonly list: ListApiKeys
  readonly show: ShowApiKey
  readonly changePlan: ChangeApiKeyPlan
  readonly revoke: RevokeApiKey
  readonly plans: Plans
  /** Unix time in milliseconds. */
  nowMs(): number
}

export interface KeysCommandDeps {
  /** Opens the desk for one command and closes it afterwards. */
  readonly atKeyDesk: (work: (desk: KeyDesk) => Promise<void>) => Promise<void>
  readonly print: (text: string) => void
}

interface Limited {
  readonly minute?: number
  readonly day?: number
}

interface Printed {
  readonly json?: true
}

const ROTATION = `
To replace a key without a gap, issue a second one to its owner, wait until all callers use it, and revoke the first:
both are valid meanwhile.`

/** `petstore keys …` */
export function makeKeysCommand({ atKeyDesk, print }: KeysCommandDeps): Command {
  const keys = new Command('keys')
    .description('manage API keys, in the MongoDB that MONGODB_URL names')
    .addHelpText('after', ROTATION)
    .addHelpText('afterAll', '\nNeeds MONGODB_URL, a URL that begins with mongodb:// or mongodb+srv://.')
  const keyId = () => new Argument('<key-id>', 'the public name of a key, as list shows it: key_…')
  const printJson = (value: unknown) => print(`${JSON.stringify(value, null, 2)}\n`)
  const printKey = (report: KeyReport, { json }: Printed) => (json ? printJson(report) : print(keyLines(report)))
  const report = (key: StoredApiKey, desk: KeyDesk) => reportOf(key, desk.plans, desk.nowMs())

  keys
    .command('issue')
    .description('issue a key and print its secret, this once')
    .addOption(planOption('the plan (required)').makeOptionMandatory())
    .addOption(new Option('--owner <name>', 'whose key it is (required)').argParser(ownerOf).makeOptionMandatory())
    .addOption(minuteOption())
    .addOption(dayOption())
    .addOption(
      new Option(
        '--expires <when>',
        'when it ends: in 90d, 12h or 30m, as 2027-01-31 begins in UTC, or at 2027-01-31T12:00Z (default: never)',
      ),
    )
    .addOption(jsonOption())
    .action(
      async (
        { plan, owner, expires, json, ...limited }: { plan: PlanName; owner: string; expires?: string } & Limited & Printed,
        command: Command,
      ) => {
        const limits = usageOf(command, () => ownLimits(limited))
        const expiresAtMs = expires === undefined ? undefined : usageOf(command, () => expiryOf(expires, Date.now()), "option '--expires'")
        await atKeyDesk(async (desk) => {
          const { key, secret } = await desk.issue({ owner, plan, ...limits, ...(expiresAtMs === undefined ? {} : { expiresAtMs }) })
          if (json) printJson({ key: secret, ...report(key, desk) })
          else print(`The API key, shown this once and stored nowhere:\n\n  ${secret}\n\n${keyLines(report(key, desk))}`)
        })
      },
    )

  keys
    .command('list')
    .description('list keys, the oldest first')
    .addOption(new Option('--owner <name>', 'only keys of this owner').argParser(ownerOf))
    .addOption(planOption('only keys on this plan'))
    .addOption(new Option('--state <state>', 'only keys in this state').choices(API_KEY_STATES))
    .addOption(jsonOption())
    .action(async ({ json, ...filter }: { owner?: string; plan?: PlanName; state?: ApiKeyState } & Printed) =>
      atKeyDesk(async (desk) => {
        const reports = (await desk.list(filter)).map((key) => report(key, desk))
        if (json) printJson(reports)
        else print(keyTable(reports, { isFiltered: Object.keys(filter).length > 0 }))
      }),
    )

  keys
    .command('show')
    .description('show one key')
    .addArgument(keyId())
    .addOption(jsonOption())
    .action(async (text: string, printed: Printed, command: Command) => {
      const id = readKeyId(command, text)
      await atKeyDesk(async (desk) => printKey(report(await desk.show(id), desk), printed))
    })

  keys
    .command('plan')
    .description('put a key on another plan; limits of its own are gone unless given again')
    .addArgument(keyId())
    .addArgument(new Argument('<plan>', 'the plan').choices(PLAN_NAMES))
    .addOption(minuteOption())
    .addOption(dayOption())
    .addOption(jsonOption())
    .action(async (text: string, plan: PlanName, { json, ...limited }: Limited & Printed, command: Command) => {
      const id = readKeyId(command, text)
      const limits = usageOf(command, () => ownLimits(limited))
      await atKeyDesk(async (desk) => printKey(report(await desk.changePlan(id, { plan, ...limits }), desk), json ? { json } : {}))
    })

  keys
    .command('revoke')
    .description('make a key invalid, for good')
    .addArgument(keyId())
    .addOption(jsonOption())
    .action(async (text: string, printed: Printed, command: Command) => {
      const id = readKeyId(command, text)
      await atKeyDesk(async (desk) => printKey(report(await desk.revoke(id), desk), printed))
    })

  return keys
}

function readKeyId(command: Command, text: string): string {
  return usageOf(command, () => keyIdOf(text), "argument 'key-id'")
}

/** What an option says is wrong usage, whether it is read by commander or here. */
function usageOf<Value>(command: Command, read: () => Value, place = ''): Value {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return command.error(`error: ${place ? `${place}: ` : ''}${error.message}`)
  }
}
