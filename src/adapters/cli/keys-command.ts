import { Argument, Command, Option } from 'commander'
import type { ChangedApiKey } from '../../core/announce-change.js'
import type { ApiKeyState, StoredApiKey } from '../../core/api-key.js'
import { API_KEY_STATES } from '../../core/api-key.js'
import { StoreUnavailable } from '../../core/errors.js'
import type { PlanName, Plans } from '../../core/plan.js'
import { PLAN_NAMES } from '../../core/plan.js'
import type { ChangeApiKeyPlan } from '../../core/use-cases/change-api-key-plan.js'
import type { IssueApiKey, IssuedApiKey, NewApiKey } from '../../core/use-cases/issue-api-key.js'
import type { ListApiKeys } from '../../core/use-cases/list-api-keys.js'
import type { RevokeApiKey } from '../../core/use-cases/revoke-api-key.js'
import type { ShowApiKey } from '../../core/use-cases/show-api-key.js'
import type { ShowUsage } from '../../core/use-cases/show-usage.js'
import type { UnbanApiKey } from '../../core/use-cases/unban-api-key.js'
import type { KeyReport } from './key-report.js'
import { keyLines, keyTable, toKeyReport } from './key-report.js'
import { dayOption, parseExpiry, jsonOption, parseKeyId, minuteOption, parseOwner, ownLimits, planOption } from './options.js'
import { usageLines, toUsageReport } from './usage-report.js'

/** What an operator can do with API keys. */
export interface ApiKeyAdmin {
  readonly issue: IssueApiKey
  readonly list: ListApiKeys
  readonly show: ShowApiKey
  readonly changePlan: ChangeApiKeyPlan
  readonly revoke: RevokeApiKey
  readonly usage: ShowUsage
  readonly unban: UnbanApiKey
  readonly plans: Plans
  /** Unix time in milliseconds. */
  nowMs(): number
}

export interface KeysCommandDeps {
  /** Opens the admin for one command and closes it afterwards. */
  readonly withApiKeyAdmin: (work: (admin: ApiKeyAdmin) => Promise<void>) => Promise<void>
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

const EFFECTS = {
  'at once': 'It takes effect on the next request.',
  'within 10 s': 'Redis could not be reached: it takes effect within 10 seconds.',
} as const

/** `petstore keys …` */
export function makeKeysCommand({ withApiKeyAdmin, print }: KeysCommandDeps): Command {
  const keys = new Command('keys')
    .description('manage API keys, in the MongoDB and Redis that MONGODB_URL and REDIS_URL name')
    .addHelpText('after', ROTATION)
    .addHelpText('afterAll', '\nNeeds MONGODB_URL and REDIS_URL, as the service has them.')
  const keyId = () => new Argument('<key-id>', 'the public name of a key, as list shows it: key_…')
  const printJson = (value: unknown) => print(`${JSON.stringify(value, null, 2)}\n`)
  const printKey = (report: KeyReport, { json }: Printed) => (json ? printJson(report) : print(keyLines(report)))
  const printChange = ({ key, takesEffect }: ChangedApiKey, admin: ApiKeyAdmin, { json }: Printed) => {
    if (json) printJson({ ...report(key, admin), takesEffect })
    else print(`${keyLines(report(key, admin))}\n${EFFECTS[takesEffect]}\n`)
  }
  const report = (key: StoredApiKey, admin: ApiKeyAdmin) => toKeyReport(key, admin.plans, admin.nowMs())

  keys
    .command('issue')
    .description('issue a key and print its secret, this once')
    .addOption(planOption('the plan (required)').makeOptionMandatory())
    .addOption(new Option('--owner <name>', 'whose key it is (required)').argParser(parseOwner).makeOptionMandatory())
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
        const limits = toUsage(command, () => ownLimits(limited))
        const expiresAtMs =
          expires === undefined ? undefined : toUsage(command, () => parseExpiry(expires, Date.now()), "option '--expires'")
        await withApiKeyAdmin(async (admin) => {
          const { key, secret } = await issueOrWarn(admin, {
            owner,
            plan,
            ...limits,
            ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
          })
          if (json) printJson({ key: secret, ...report(key, admin) })
          else print(`The API key, shown this once and stored nowhere:\n\n  ${secret}\n\n${keyLines(report(key, admin))}`)
        })
      },
    )

  keys
    .command('list')
    .description('list keys, the oldest first')
    .addOption(new Option('--owner <name>', 'only keys of this owner').argParser(parseOwner))
    .addOption(planOption('only keys on this plan'))
    .addOption(new Option('--state <state>', 'only keys in this state').choices(API_KEY_STATES))
    .addOption(jsonOption())
    .action(async ({ json, ...filter }: { owner?: string; plan?: PlanName; state?: ApiKeyState } & Printed) =>
      withApiKeyAdmin(async (admin) => {
        const reports = (await admin.list(filter)).map((key) => report(key, admin))
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
      await withApiKeyAdmin(async (admin) => printKey(report(await admin.show(id), admin), printed))
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
      const limits = toUsage(command, () => ownLimits(limited))
      await withApiKeyAdmin(async (admin) => printChange(await admin.changePlan(id, { plan, ...limits }), admin, json ? { json } : {}))
    })

  keys
    .command('revoke')
    .description('make a key invalid, for good')
    .addArgument(keyId())
    .addOption(jsonOption())
    .action(async (text: string, printed: Printed, command: Command) => {
      const id = readKeyId(command, text)
      await withApiKeyAdmin(async (admin) => printChange(await admin.revoke(id), admin, printed))
    })

  keys
    .command('usage')
    .description('show what a key has used and has left, its strikes and its ban')
    .addArgument(keyId())
    .addOption(jsonOption())
    .action(async (text: string, { json }: Printed, command: Command) => {
      const id = readKeyId(command, text)
      await withApiKeyAdmin(async (admin) => {
        const { key, usage } = await admin.usage(id)
        const used = toUsageReport(key, usage)
        if (json) printJson(used)
        else print(usageLines(used))
      })
    })

  keys
    .command('unban')
    .description('end the ban of a key, and forget its strikes and earlier bans')
    .addArgument(keyId())
    .addOption(jsonOption())
    .action(async (text: string, { json }: Printed, command: Command) => {
      const id = readKeyId(command, text)
      await withApiKeyAdmin(async (admin) => {
        const { key, outcome } = await admin.unban(id)
        if (json) printJson({ keyId: key.keyId, outcome })
        else print(outcome === 'lifted' ? 'The ban is lifted.\n' : 'The key was not banned; its strikes and earlier bans are forgotten.\n')
      })
    })

  return keys
}

function readKeyId(command: Command, text: string): string {
  return toUsage(command, () => parseKeyId(text), "argument 'key-id'")
}

/** A key whose secret nobody has seen is one to revoke. */
async function issueOrWarn(admin: ApiKeyAdmin, newKey: NewApiKey): Promise<IssuedApiKey> {
  try {
    return await admin.issue(newKey)
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    throw new StoreUnavailable(`${error.message}; the key may have been made all the same: look at petstore keys list, and revoke it`, {
      cause: error.cause,
    })
  }
}

/** What an option says is wrong usage, whether it is read by commander or here. */
function toUsage<Value>(command: Command, read: () => Value, place = ''): Value {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return command.error(`error: ${place ? `${place}: ` : ''}${error.message}`)
  }
}
