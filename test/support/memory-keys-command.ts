import type { ApiKeyAdmin, AuditedChange } from '../../src/adapters/cli/api-key-admin.js'
import { MemoryApiKeyHistory } from '../../src/adapters/memory/memory-api-key-history.js'
import { MemoryApiKeyStore } from '../../src/adapters/memory/memory-api-key-store.js'
import { MemoryQuotaStore } from '../../src/adapters/memory/memory-quota-store.js'
import { CryptoApiKeySecrets } from '../../src/adapters/node/crypto-api-key-secrets.js'
import { SystemClock } from '../../src/adapters/node/system-clock.js'
import type { ApiKey } from '../../src/core/api-key.js'
import { StoreUnavailable } from '../../src/core/errors.js'
import { makeChangeApiKeyPlan } from '../../src/core/use-cases/change-api-key-plan.js'
import { makeFinishRotation } from '../../src/core/use-cases/finish-rotation.js'
import { makeIssueApiKey } from '../../src/core/use-cases/issue-api-key.js'
import { makeListApiKeyHistory } from '../../src/core/use-cases/list-api-key-history.js'
import { makeListApiKeys } from '../../src/core/use-cases/list-api-keys.js'
import { makeRevokeApiKey } from '../../src/core/use-cases/revoke-api-key.js'
import { makeRotateApiKey } from '../../src/core/use-cases/rotate-api-key.js'
import { makeShowApiKey } from '../../src/core/use-cases/show-api-key.js'
import { makeShowUsage } from '../../src/core/use-cases/show-usage.js'
import { makeUnbanApiKey } from '../../src/core/use-cases/unban-api-key.js'
import { anIssue, somePlans } from '../support/builders.js'
import type { Outcome } from './command-line.js'
import { runProgram } from './command-line.js'

/** `petstore keys …` within this process, on API keys and quotas in memory. */
export class MemoryKeysCommand {
  readonly clock = new SystemClock()
  readonly apiKeyHistory = new MemoryApiKeyHistory()
  readonly apiKeyStore = new MemoryApiKeyStore(this.clock, this.apiKeyHistory)
  readonly quotas = new MemoryQuotaStore(this.clock)
  readonly audited: AuditedChange[] = []
  /** What the last command has printed, also if it failed. */
  printed = ''
  /** Set to true to simulate an outage of the store that announces changes. */
  isQuotaStoreDown = false

  async store(...keys: ApiKey[]): Promise<void> {
    for (const key of keys) await this.apiKeyStore.insert(key, anIssue())
  }

  async run(...args: string[]): Promise<Outcome> {
    const { apiKeyStore, apiKeyHistory, clock } = this
    const plans = somePlans()
    const secrets = new CryptoApiKeySecrets()
    const quotaControl = this.isQuotaStoreDown ? Object.assign(new MemoryQuotaStore(clock), { announce: failToAnnounce }) : this.quotas
    const show = makeShowApiKey({ apiKeyStore })
    const admin: ApiKeyAdmin = {
      issue: makeIssueApiKey({ apiKeyStore, secrets, clock, plans }),
      list: makeListApiKeys({ apiKeyStore, clock }),
      show,
      changePlan: makeChangeApiKeyPlan({ apiKeyStore, quotaControl, clock, plans }),
      revoke: makeRevokeApiKey({ apiKeyStore, quotaControl, clock }),
      rotate: makeRotateApiKey({ apiKeyStore, quotaControl, secrets, clock }),
      finishRotation: makeFinishRotation({ apiKeyStore, quotaControl, clock }),
      showUsage: makeShowUsage({ showApiKey: show, quotaControl, plans }),
      unban: makeUnbanApiKey({ showApiKey: show, quotaControl, apiKeyHistory, clock }),
      history: makeListApiKeyHistory({ showApiKey: show, apiKeyHistory }),
      plans,
      nowMs: () => clock.nowMs(),
    }
    this.printed = ''
    const outcome = await runProgram(['keys', ...args], {
      withApiKeyAdmin: (work) => work(admin),
      audit: (change) => void this.audited.push(change),
      print: (text) => void (this.printed += text),
    })
    return { ...outcome, stdout: outcome.stdout + this.printed }
  }

  /** The standard output of a command that succeeds. */
  async print(...args: string[]): Promise<string> {
    const { stdout, ...rest } = await this.run(...args)
    if (rest.usage !== 'right' || rest.stderr !== '') throw new Error(`petstore keys ${args.join(' ')} failed: ${rest.stderr}`)
    return stdout
  }

  /** The output of a command with `--json`. */
  async printJson<Result>(...args: string[]): Promise<Result> {
    return JSON.parse(await this.print(...args, '--json')) as Result
  }
}

async function failToAnnounce(): Promise<void> {
  throw new StoreUnavailable('Redis is unavailable')
}
