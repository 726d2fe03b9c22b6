import { Argument, Command, InvalidArgumentError, Option } from 'commander'
import type { ChangedApiKey } from '../../core/announce-change.js'
import type { ApiKeyState, StoredApiKey } from '../../core/api-key.js'
import { API_KEY_STATES } from '../../core/api-key.js'
import { LimitsRequired, StoreUnavailable } from '../../core/errors.js'
import type { Limits } from '../../core/quota.js'
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
import { formatKey, formatKeys, toKeyReport } from './key-report.js'
import type { LimitOptions } from './options.js'
import {
  makeDayOption,
  makeJsonOption,
  makeMinuteOption,
  makePlanOption,
  parseExpiry,
  parseKeyId,
  parseOwner,
  toLimits,
} from './options.js'
import { formatUsage, toUsageReport } from './usage-report.js'

/** The operations on API keys that operators can run. */
export interface ApiKeyAdmin {
  readonly issue: IssueApiKey
  readonly list: ListApiKeys
  readonly show: ShowApiKey
  readonly changePlan: ChangeApiKeyPlan
  readonly revoke: RevokeApiKey
  readonly showUsage: ShowUsage
  readonly unban: UnbanApiKey
  readonly plans: Plans
  /** Unix time in milliseconds. */
  nowMs(): number
}

export interface KeysCommandDeps {
  /** Connects to the storage, runs `work` and disconnects. */
  readonly withApiKeyAdmin: (work: (admin: ApiKeyAdmin) => Promise<void>) => Promise<void>
  readonly print: (text: string) => void
  /** Called for each change of a key, after it was made. */
  readonly audit: (change: KeyChange) => void
}

/** Contains no secret. */
export interface KeyChange {
  readonly msg: 'API key issued' | 'plan of API key changed' | 'API key revoked' | 'API key unbanned'
  readonly keyId: string
  readonly owner: string
  readonly plan: PlanName
  readonly limits: Limits | undefined
}

interface OutputOptions {
  readonly json?: true
}

const ROTATION_HELP = `
To replace a key without downtime, issue a second key to its owner, wait until all clients use it, and revoke the first.
Both keys are valid in the meantime.`

const EFFECTS = {
  'at once': 'The change takes effect on the next request.',
  'within 10 s': 'Redis is unavailable, so the change takes effect within 10 seconds.',
} as const

/** `petstore keys …` */
export function makeKeysCommand({ withApiKeyAdmin, print, audit }: KeysCommandDeps): Command {
  const keys = new Command('keys')
    .description('manage API keys, which are stored in the MongoDB database at MONGODB_URL')
    .addHelpText('after', ROTATION_HELP)
    .addHelpText('afterAll', '\nRequires MONGODB_URL and REDIS_URL with the same values as the service.')
  const makeKeyIdArgument = () => new Argument('<key-id>', 'the public name of a key (key_…), as printed by list')
  const printJson = (value: unknown) => print(`${JSON.stringify(value, null, 2)}\n`)
  const toReport = (key: StoredApiKey, admin: ApiKeyAdmin): KeyReport => toKeyReport(key, admin.plans, admin.nowMs())
  const auditChange = (msg: KeyChange['msg'], { keyId, owner, plan, limits }: StoredApiKey) => audit({ msg, keyId, owner, plan, limits })
  const printChange = ({ key, takesEffect }: ChangedApiKey, admin: ApiKeyAdmin, { json }: OutputOptions) => {
    const report = toReport(key, admin)
    if (json) printJson({ ...report, takesEffect })
    else print(`${formatKey(report)}\n${EFFECTS[takesEffect]}\n`)
  }

  keys
    .command('issue')
    .description('issue a key and print its secret, which is shown only once')
    .addOption(makePlanOption('the plan (required)').makeOptionMandatory())
    .addOption(new Option('--owner <name>', 'the owner of the key (required)').argParser(parseOwner).makeOptionMandatory())
    .addOption(makeMinuteOption())
    .addOption(makeDayOption())
    .addOption(
      new Option(
        '--expires <when>',
        'when the key expires: in 90d, 12h or 30m, at the start of 2027-01-31 in UTC, or at 2027-01-31T12:00Z (default: never)',
      ),
    )
    .addOption(makeJsonOption())
    .action(
      async (
        { plan, owner, expires, json, ...limitOptions }: { plan: PlanName; owner: string; expires?: string } & LimitOptions & OutputOptions,
        command: Command,
      ) => {
        const limits = await reportUsageErrors(command, () => toLimits(limitOptions))
        const expiry =
          expires === undefined
            ? {}
            : { expiresAtMs: await reportUsageErrors(command, () => parseExpiry(expires, Date.now()), "option '--expires'") }
        await withApiKeyAdmin(async (admin) => {
          const newKey = { owner, plan, ...limits, ...expiry }
          const { key, secret } = await reportUsageErrors(command, () => issueOrExplain(admin, newKey))
          auditChange('API key issued', key)
          const report = toReport(key, admin)
          if (json) printJson({ key: secret, ...report })
          else print(`The API key's secret. It is shown only once and is not stored:\n\n  ${secret}\n\n${formatKey(report)}`)
        })
      },
    )

  keys
    .command('list')
    .description('list keys, oldest first')
    .addOption(new Option('--owner <name>', 'only keys of this owner').argParser(parseOwner))
    .addOption(makePlanOption('only keys on this plan'))
    .addOption(new Option('--state <state>', 'only keys in this state').choices(API_KEY_STATES))
    .addOption(makeJsonOption())
    .action(async ({ json, ...filter }: { owner?: string; plan?: PlanName; state?: ApiKeyState } & OutputOptions) =>
      withApiKeyAdmin(async (admin) => {
        const reports = (await admin.list(filter)).map((key) => toReport(key, admin))
        if (json) printJson(reports)
        else print(formatKeys(reports, { isFiltered: Object.keys(filter).length > 0 }))
      }),
    )

  addKeyCommand('show', 'show a key', async (admin, keyId, { json }) => {
    const report = toReport(await admin.show(keyId), admin)
    if (json) printJson(report)
    else print(formatKey(report))
  })

  keys
    .command('plan')
    .description('change the plan of a key; limits set on the key are removed unless you pass them again')
    .addArgument(makeKeyIdArgument())
    .addArgument(new Argument('<plan>', 'the plan').choices(PLAN_NAMES))
    .addOption(makeMinuteOption())
    .addOption(makeDayOption())
    .addOption(makeJsonOption())
    .action(async (text: string, plan: PlanName, { json, ...limitOptions }: LimitOptions & OutputOptions, command: Command) => {
      const keyId = await readKeyId(command, text)
      const limits = await reportUsageErrors(command, () => toLimits(limitOptions))
      await withApiKeyAdmin(async (admin) => {
        const change = await reportUsageErrors(command, () => admin.changePlan(keyId, { plan, ...limits }))
        auditChange('plan of API key changed', change.key)
        printChange(change, admin, json ? { json } : {})
      })
    })

  /** Adds a command whose only argument is a key ID. */
  function addKeyCommand(
    name: string,
    description: string,
    run: (admin: ApiKeyAdmin, keyId: string, output: OutputOptions) => Promise<void>,
  ): void {
    keys
      .command(name)
      .description(description)
      .addArgument(makeKeyIdArgument())
      .addOption(makeJsonOption())
      .action(async (text: string, output: OutputOptions, command: Command) => {
        const keyId = await readKeyId(command, text)
        await withApiKeyAdmin((admin) => run(admin, keyId, output))
      })
  }

  addKeyCommand('revoke', 'revoke a key permanently', async (admin, keyId, output) => {
    const change = await admin.revoke(keyId)
    auditChange('API key revoked', change.key)
    printChange(change, admin, output)
  })
  addKeyCommand('usage', 'show the used and remaining requests of a key, its strikes and its ban', async (admin, keyId, { json }) => {
    const { key, usage } = await admin.showUsage(keyId)
    const report = toUsageReport(key, usage)
    if (json) printJson(report)
    else print(formatUsage(report))
  })
  addKeyCommand('unban', 'lift the ban of a key and clear its strikes and ban history', async (admin, keyId, { json }) => {
    const { key, outcome } = await admin.unban(keyId)
    auditChange('API key unbanned', key)
    if (json) printJson({ keyId: key.keyId, outcome })
    else print(outcome === 'lifted' ? 'The ban is lifted.\n' : 'The key was not banned. Its strikes and ban history are cleared.\n')
  })

  return keys
}

function readKeyId(command: Command, text: string): Promise<string> {
  return reportUsageErrors(command, () => parseKeyId(text), "argument 'key-id'")
}

/** If issuing fails during an outage, a key may exist whose secret nobody has seen. */
async function issueOrExplain(admin: ApiKeyAdmin, newKey: NewApiKey): Promise<IssuedApiKey> {
  try {
    return await admin.issue(newKey)
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    throw new StoreUnavailable(`${error.message}; the key may have been created anyway: find it with petstore keys list and revoke it`, {
      cause: error.cause,
    })
  }
}

/** Reports values that this file or a use case rejects in the same way as values that commander rejects. */
async function reportUsageErrors<Value>(command: Command, run: () => Value | Promise<Value>, place = ''): Promise<Value> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof InvalidArgumentError) return command.error(`error: ${place ? `${place}: ` : ''}${error.message}`)
    if (error instanceof LimitsRequired) return command.error(`error: ${error.message}: use --minute and --day`)
    throw error
  }
}
