import type { ApiKeyAdmin } from './adapters/cli/keys-command.js'
import type { Config } from './config.js'
import type { Container, Storage } from './container.js'
import { makeContainer, TOKENS } from './container.js'
import type { Clock } from './core/ports/clock.js'
import type { ChangeApiKeyPlan } from './core/use-cases/change-api-key-plan.js'
import type { IssueApiKey } from './core/use-cases/issue-api-key.js'
import type { ListApiKeys } from './core/use-cases/list-api-keys.js'
import type { RevokeApiKey } from './core/use-cases/revoke-api-key.js'
import type { Seed } from './core/use-cases/seed.js'
import type { ShowApiKey } from './core/use-cases/show-api-key.js'
import type { ShowUsage } from './core/use-cases/show-usage.js'
import type { UnbanApiKey } from './core/use-cases/unban-api-key.js'

/** Runs a command on the shared data, and closes what it opened. */
async function onStorage(config: Config, work: (container: Container) => Promise<void>): Promise<void> {
  // Errors are printed at the end, in one sentence.
  const container = makeContainer({ ...config, logLevel: 'silent' })
  const storage = container.get<Storage>(TOKENS.storage)
  try {
    await storage.prepare()
    await work(container)
  } finally {
    await storage.close()
  }
}

/** What `petstore keys` works with. */
export async function withApiKeyAdmin(config: Config, work: (admin: ApiKeyAdmin) => Promise<void>): Promise<void> {
  await onStorage(config, async (container) =>
    work({
      issue: container.get<IssueApiKey>(TOKENS.issueApiKey),
      list: container.get<ListApiKeys>(TOKENS.listApiKeys),
      show: container.get<ShowApiKey>(TOKENS.showApiKey),
      changePlan: container.get<ChangeApiKeyPlan>(TOKENS.changeApiKeyPlan),
      revoke: container.get<RevokeApiKey>(TOKENS.revokeApiKey),
      usage: container.get<ShowUsage>(TOKENS.showUsage),
      unban: container.get<UnbanApiKey>(TOKENS.unbanApiKey),
      plans: config.plans,
      nowMs: () => container.get<Clock>(TOKENS.clock).nowMs(),
    }),
  )
}

/** What `petstore seed` works with. */
export async function withSeed(config: Config, work: (seed: Seed) => Promise<void>): Promise<void> {
  await onStorage(config, async (container) => work(container.get<Seed>(TOKENS.seed)))
}
