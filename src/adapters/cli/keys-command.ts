import { Argument, Command, Option } from 'commander'
import type { ApiKeyState } from '../../core/api-key.js'
import { API_KEY_STATES } from '../../core/api-key.js'
import { StoreUnavailable } from '../../core/errors.js'
import type { PlanName } from '../../core/plan.js'
import { PLAN_NAMES } from '../../core/plan.js'
import type { IssuedApiKey, NewApiKey } from '../../core/use-cases/issue-api-key.js'
import { UnbanUnrecorded } from '../../core/use-cases/unban-api-key.js'
import type { ApiKeyAdmin, KeysCommandDeps } from './api-key-admin.js'
import { addHistoryCommand } from './history-command.js'
import { formatKeys, toKeyReport } from './key-report.js'
import type { OutputOptions } from './keys-output.js'
import { KeysOutput } from './keys-output.js'
import type { LimitOptions } from './options.js'
import {
  makeByOption,
  makeDayOption,
  makeJsonOption,
  makeMinuteOption,
  makePlanOption,
  parseExpiry,
  parseName,
  toLimits,
} from './options.js'
import { addRotateCommand } from './rotate-command.js'
import { makeKeyIdArgument, readKeyId, reportUsageErrors } from './usage-errors.js'
import { formatUsage, toUsageReport } from './usage-report.js'

const ROTATION_HELP = `
To replace the secret of a key without downtime, rotate the key, give the new
secret to its owner, and finish the rotation when show says that the old secret
is no longer used. Both secrets are valid in the meantime.`

const SETTINGS_HELP = `
Requires MONGODB_URL and REDIS_URL, and REDIS_PREFIX if it is set for the
service, with the same values as the service.`

interface OperatorOptions extends OutputOptions {
  readonly by?: string
}

/** `petstore keys …` */
export function makeKeysCommand(deps: KeysCommandDeps): Command {
  const { withApiKeyAdmin, systemUser } = deps
  const output = new KeysOutput(deps)
  const keys = new Command('keys')
    .description('manage API keys, which are stored in the MongoDB database at MONGODB_URL')
    .addHelpText('after', ROTATION_HELP)
    .addHelpText('afterAll', SETTINGS_HELP)

  keys
    .command('issue')
    .description('issue a key and print its secret, which is shown only once')
    .addOption(makePlanOption('the plan (required)').makeOptionMandatory())
    .addOption(new Option('--owner <name>', 'the owner of the key (required)').argParser(parseName).makeOptionMandatory())
    .addOption(makeMinuteOption())
    .addOption(makeDayOption())
    .addOption(
      new Option(
        '--expires <when>',
        'when the key expires: in 90d, 12h or 30m, at the start of 2027-01-31 in UTC, or at 2027-01-31T12:00Z (default: never)',
      ),
    )
    .addOption(makeByOption())
    .addOption(makeJsonOption())
    .action(async (options: { plan: PlanName; owner: string; expires?: string } & LimitOptions & OperatorOptions, command: Command) => {
      const { plan, owner, expires, by = systemUser() } = options
      const limits = await reportUsageErrors(command, () => toLimits(options))
      const expiry =
        expires === undefined
          ? {}
          : { expiresAtMs: await reportUsageErrors(command, () => parseExpiry(expires, Date.now()), "option '--expires'") }
      await withApiKeyAdmin(async (admin) => {
        const newKey = { owner, plan, ...limits, ...expiry }
        const issued = await reportUsageErrors(command, () => issueOrExplain(admin, newKey, by))
        output.audit('API key issued', issued.key, by)
        output.printChange(issued, admin, options)
      })
    })

  keys
    .command('list')
    .description('list keys, oldest first')
    .addOption(new Option('--owner <name>', 'only keys of this owner').argParser(parseName))
    .addOption(makePlanOption('only keys on this plan'))
    .addOption(new Option('--state <state>', 'only keys in this state').choices(API_KEY_STATES))
    .addOption(makeJsonOption())
    .action(async ({ json, ...filter }: { owner?: string; plan?: PlanName; state?: ApiKeyState } & OutputOptions) =>
      withApiKeyAdmin(async (admin) => {
        const reports = (await admin.list(filter)).map((key) => toKeyReport(key, admin.plans, admin.nowMs()))
        if (json) output.printJson(reports)
        else output.print(formatKeys(reports, { isFiltered: Object.keys(filter).length > 0 }))
      }),
    )

  addKeyCommand('show', 'show a key', async (admin, keyId, options) => output.printKey(await admin.show(keyId), admin, options))

  keys
    .command('plan')
    .description('change the plan of a key; limits set on the key are removed unless you pass them again')
    .addArgument(makeKeyIdArgument())
    .addArgument(new Argument('<plan>', 'the plan').choices(PLAN_NAMES))
    .addOption(makeMinuteOption())
    .addOption(makeDayOption())
    .addOption(makeByOption())
    .addOption(makeJsonOption())
    .action(async (text: string, plan: PlanName, options: LimitOptions & OperatorOptions, command: Command) => {
      const keyId = await readKeyId(command, text)
      const limits = await reportUsageErrors(command, () => toLimits(options))
      const { by = systemUser() } = options
      await withApiKeyAdmin(async (admin) => {
        const change = await reportUsageErrors(command, () => admin.changePlan(keyId, { plan, ...limits }, by))
        output.reportChange('plan of API key changed', change, 'The key already has this plan and these limits.', admin, options)
      })
    })
  addRotateCommand(keys, deps, output)

  /** Adds a command whose only argument is a key ID. */
  function addKeyCommand(
    name: string,
    description: string,
    run: (admin: ApiKeyAdmin, keyId: string, options: OutputOptions) => Promise<void>,
  ): Command {
    return keys
      .command(name)
      .description(description)
      .addArgument(makeKeyIdArgument())
      .addOption(makeJsonOption())
      .action(async (text: string, options: OutputOptions, command: Command) => {
        const keyId = await readKeyId(command, text)
        await withApiKeyAdmin((admin) => run(admin, keyId, options))
      })
  }

  addKeyCommand('revoke', 'revoke a key permanently', async (admin, keyId, options: OperatorOptions) => {
    const { by = systemUser() } = options
    const change = await admin.revoke(keyId, by)
    output.reportChange('API key revoked', change, 'The key was already revoked.', admin, options)
  }).addOption(makeByOption())
  addKeyCommand('usage', 'show the used and remaining requests of a key, its strikes and its ban', async (admin, keyId, { json }) => {
    const { key, usage } = await admin.showUsage(keyId)
    const report = toUsageReport(key, usage)
    if (json) output.printJson(report)
    else output.print(formatUsage(report))
  })
  addKeyCommand('unban', 'lift the ban of a key and clear its strikes and ban history', async (admin, keyId, options: OperatorOptions) => {
    const { json, by = systemUser() } = options
    const { key, outcome } = await admin.unban(keyId, by).catch((error: unknown) => {
      if (error instanceof UnbanUnrecorded && error.outcome === 'lifted') output.audit('API key unbanned', error.key, by)
      throw error
    })
    if (outcome === 'lifted') output.audit('API key unbanned', key, by)
    if (json) output.printJson({ keyId: key.keyId, outcome })
    else output.print(outcome === 'lifted' ? 'The ban is lifted.\n' : 'The key was not banned. Its strikes and ban history are cleared.\n')
  }).addOption(makeByOption())
  addHistoryCommand(keys, deps, output)

  return keys
}

/** If issuing fails during an outage, a key may exist whose secret nobody has seen. */
async function issueOrExplain(admin: ApiKeyAdmin, newKey: NewApiKey, by: string): Promise<IssuedApiKey> {
  try {
    return await admin.issue(newKey, by)
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    throw new StoreUnavailable(`${error.message}; the key may have been created anyway: find it with petstore keys list and revoke it`, {
      cause: error.cause,
    })
  }
}
